import { expect } from 'chai';
import fc from 'fast-check';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../src/model/crates.js';
import { describeProblem } from '../../src/model/problems.js';
import { checkOf } from '../../src/model/schema-check.js';
import { keyOf } from '../support/one-file.js';

const REVISION = '0123456789abcdef0123456789abcdef01234567';

const check = checkOf(DEPENDENCIES_SCHEMA);

/** What is wrong with dependencies, or undefined. */
function problemOf(value: unknown): string | undefined {
  const problem = check(value);
  return problem && describeProblem('dependencies', problem);
}

describe('dependencies', () => {
  for (const requirement of [
    '1',
    '1.2',
    '1.2.3',
    '^1.2.3',
    '~1.2',
    '=1.0.0',
    '>=1.2, <2',
    '> 1',
    '*',
    '1.*',
    '1.2.*',
    '1.x',
    '0.0.1-alpha.1',
    '1.0.0-rc.1+build.5',
    '<=0.9.0',
  ]) {
    it(`accepts the version "${requirement}" of a dependency`, () => {
      expect(problemOf({ serde: requirement })).to.equal(undefined);
    });
  }

  for (const requirement of [
    '',
    ' ',
    'v1',
    '1.2.3.4',
    '01.2',
    '1..2',
    '*, 1',
    '1.*.2',
    '==1',
    '1 || 2',
    '1.2-alpha',
    'latest',
    '1,',
    '"1"',
    '1\n',
    '$x',
  ]) {
    it(`refuses the version ${JSON.stringify(requirement)} of a dependency`, () => {
      expect(problemOf({ serde: requirement })).to.match(/^dependencies\.serde: must be a Cargo/);
    });
  }

  it('accepts all keys that a dependency may have', () => {
    const value = {
      tokio: { version: '1', features: ['rt', 'io-util', '2d'], optional: true, 'default-features': false },
      renamed: { version: '1', package: 'another' },
      forked: { git: 'https://git.example.com/team/forked.git', rev: REVISION, version: '1' },
      ours: { version: '1', registry: 'sparse+https://crates.example.com/index/' },
      ...{ local: { path: 'crates/local' }, itself: { path: '.' } },
    };
    expect(problemOf(value)).to.equal(undefined);
  });

  it('names the crate and the key that make dependencies invalid', () => {
    const known = 'version, features, optional, default-features, package, git, rev, registry, path';
    for (const name of ['default_features', 'branch', 'tag', 'workspace'])
      expect(problemOf({ a: { version: '1', [name]: 'x' } })).to.equal(
        `dependencies.a.${name}: is not accepted; possible are ${known}`,
      );
    expect(problemOf({ a: {} })).to.equal('dependencies.a.version: is required');
    expect(problemOf({ a: { registry: 'sparse+https://crates.example/' } })).to.match(
      /version: is required$/,
    );
    for (const value of [null, undefined, [], 'serde', 7]) {
      expect(problemOf(value)).to.match(/^dependencies: must be an object/);
    }
  });

  for (const [member, value, message] of [
    ['git', 'git@git.example.com:team/x.git', /must be the URL of a git repository/],
    ['git', 'ssh://git.example.com/x', /must be the URL of a git repository/],
    ['git', 'file:///etc', /must be the URL of a git repository/],
    ['git', 'https://user:secret@git.example.com/x', /without user and password/],
    ['git', 'https://git.example.com/x"\n[y]', /must be the URL of a git repository/],
    ['rev', 'main', /must be a whole revision/],
    ['rev', 'abcdef0', /must be a whole revision/],
    ['registry', 'https://crates.example.com/index/', /must be the sparse index of a registry/],
    ['registry', 'sparse+https://crates.example.com/index', /must be the sparse index of a registry/],
    ['path', '/etc', /must be relative/],
    ['path', '../outside', /must not leave the folder/],
    ['path', 'a"b', /must not have any of/],
    ['package', 'a b', /is not a crate name/],
  ] as const)
    it(`refuses the ${member} ${JSON.stringify(value)} of a dependency`, () => {
      const problem = problemOf({ a: { version: '1', [member]: value } }) ?? '';
      expect(problem)
        .to.match(message)
        .and.to.match(new RegExp(`^dependencies\\.a\\.${member}: `));
    });

  it('rejects names and versions of crates that a Cargo manifest would read as something else', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (name, version) => {
        if (check({ [name]: version })) return;
        expect(name).to.match(/^[A-Za-z][A-Za-z0-9_-]*$/);
        expect(version).to.match(/^[0-9A-Za-z.*^~<>=+, -]+$/);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the source key', () => {
  it('computes the same source key whatever the order of keys in the dependencies is', () => {
    const one: Dependencies = { a: '1', b: { version: '2', optional: true } };
    const other: Dependencies = { b: { optional: true, version: '2' }, a: '1' };
    expect(keyOf('x', one)).to.equal(keyOf('x', other));
    expect(keyOf('x', null)).to.equal(keyOf('x', {}));
  });

  it('computes another source key when the code or anything in the dependencies differs', () => {
    const keys = [
      keyOf(null, null),
      keyOf('', null),
      keyOf('x', null),
      keyOf('x', { a: '1' }),
      keyOf('x', { a: '2' }),
      keyOf('x', { b: '1' }),
      keyOf('x', { a: { version: '1' } }),
      keyOf('x', { a: { version: '1', features: ['f', 'g'] } }),
      keyOf('x', { a: { version: '1', features: ['g', 'f'] } }),
    ];
    expect(new Set(keys).size).to.equal(keys.length);
    for (const key of keys) expect(key).to.match(/^[0-9a-f]{64}$/);
  });
});
