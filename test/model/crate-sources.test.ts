/** Where crates may be from, as far as files and the operator have a say. */
import { expect } from 'chai';
import { crateProblem } from '../../src/model/crate-sources.js';
import type { Dependency } from '../../src/model/crates.js';
import { describeProblem } from '../../src/model/problems.js';
import { SETTINGS } from '../../src/settings.js';

const rev = '0123456789abcdef0123456789abcdef01234567';
const git = 'https://git.example/x.git';
const registry = 'sparse+https://crates.example:8443/';
const allowed = SETTINGS.CARGO_SOURCES.read('git.example, crates.example:8443, http://127.0.0.1:7');
const FILE = { digest: '', size: 0 };
const files = { 'crates/shared/Cargo.toml': FILE, 'src/lib.rs': FILE, 'empty/src/lib.rs': FILE };

function problemOf(crate: Dependency, name = 'a'): string | undefined {
  const problem = crateProblem({ other: '1', [name]: crate }, { files, allowed });
  return problem && describeProblem('dependencies', problem);
}

describe('where crates are from', () => {
  const accepted: readonly Dependency[] = [
    { version: '1', package: 'b' },
    { git, rev },
    { git, rev, version: '1', package: 'b' },
    { git: 'http://127.0.0.1:7/x', rev },
    { version: '1', registry },
    { path: 'crates/shared' },
    { path: '.' },
  ];
  for (const crate of accepted)
    it(`accepts ${JSON.stringify(crate)}`, () => expect(problemOf(crate)).to.equal(undefined));

  const HOSTS = 'crates.io and git.example, crates.example:8443, http://127.0.0.1:7 (CARGO_SOURCES)';
  const refused: readonly (readonly [Dependency, string])[] = [
    [{ git }, 'rev: is required with `git`: a whole revision, so that the crate stays what it is'],
    [{ version: '1', rev }, 'rev: is only for a crate with `git`'],
    [{ git, rev, path: '.' }, 'git: cannot be beside `path`: a crate is from one place'],
    [{ version: '1', registry, path: '.' }, 'registry: cannot be beside `path`: a crate is from one place'],
    [{ path: 'empty' }, 'path: there is no empty/Cargo.toml among the files of the source'],
    [
      { git: 'http://git.example/x.git', rev },
      `git: is not of a host that the operator allows: crates may be from ${HOSTS}`,
    ],
    [
      { version: '1', registry: 'sparse+https://crates.example/' },
      `registry: is not of a host that the operator allows: crates may be from ${HOSTS}`,
    ],
  ];
  for (const [crate, message] of refused)
    it(`refuses ${JSON.stringify(crate)}`, () =>
      expect(problemOf(crate)).to.equal(`dependencies.a.${message}`));

  it('refuses another place for crates that the SDK has', () => {
    for (const [member, crate] of Object.entries({
      ...{ git: { git, rev }, registry: { version: '1', registry }, path: { path: '.' } },
      package: { version: '1', package: 'b' },
    }))
      expect(problemOf(crate, 'serde')).to.match(
        new RegExp(`^dependencies\\.serde\\.${member}: is not accepted`),
      );
  });

  it('refuses hosts of the operator that are none', () => {
    for (const wrong of ['git.example/path', 'ftp://git.example', 'https://user@git.example', 'a b'])
      expect(() => SETTINGS.CARGO_SOURCES.read(wrong), wrong).to.throw(
        /must be hosts such as git\.example\.com/,
      );
    expect(SETTINGS.CARGO_SOURCES.read(undefined)).to.deep.equal([]);
  });
});
