/** The manifest of a bundle. */
import { expect } from 'chai';
import type { ErrorCode } from '../../../src/errors.js';
import { AppError } from '../../../src/errors.js';
import { readManifest as read } from '../../../src/import/bundle/manifest.js';
import { withTexts } from '../documents/documents.js';

const readManifest = (text: string) => read(text, 'bundle.yaml');

function expectRejected(text: string, message: RegExp, code: ErrorCode = 'invalid_bundle'): void {
  let error: unknown;
  try {
    readManifest(text);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).to.be.instanceOf(AppError);
  expect((error as AppError).message).to.match(message);
  expect((error as AppError).code).to.equal(code);
}

describe('manifest of a bundle', () => {
  const readTexts = (text: string) => withTexts(readManifest(text));

  it('reads the name, crates, bindings and routes of a manifest', () => {
    const manifest = readManifest(`
bundle:
  name: " Pets "
  version: "1.0"
edition: "2024"
dependencies:
  regex: "1.10"
  chrono: { version: "0.4", features: [serde], default-features: false }
bindings:
  db: pet store
routes:
  - { method: GET, path: "/pets/{id}", handler: get_pet }
  - { method: post, path: /pets, handler: create-pet.rs }
  - { method: get, path: /pets }
`);
    expect(manifest).to.deep.equal({
      name: 'Pets',
      dependencies: {
        regex: '1.10',
        chrono: { version: '0.4', features: ['serde'], 'default-features': false },
      },
      edition: '2024',
      routes: [
        { method: 'GET', path: '/pets/{id}', handler: 'get_pet', place: 'bundle.yaml: routes.0' },
        { method: 'POST', path: '/pets', handler: 'create-pet', place: 'bundle.yaml: routes.1' },
        { method: 'GET', path: '/pets', handler: null, place: 'bundle.yaml: routes.2' },
      ],
      bindings: [{ poolId: 'db', service: 'pet store' }],
      warnings: [],
    });
  });

  const nothing = { name: null, dependencies: null, edition: null, routes: [], bindings: [], warnings: [] };
  for (const text of [
    '',
    '# nothing yet\n',
    '{}',
    'bundle:\ndependencies:\nbindings:\nroutes:\n',
    'bundle: {version: 1.0}',
  ]) {
    it(`reads an empty manifest: ${JSON.stringify(text)}`, () => {
      expect(readManifest(text)).to.deep.equal(nothing);
    });
  }

  it('reads a manifest that is JSON', () => {
    expect(readManifest('{"bundle": {"name": "Pets"}}')).to.deep.equal({ ...nothing, name: 'Pets' });
  });

  it('reads a manifest with aliases', () => {
    const { dependencies } = readManifest('dependencies:\n  rand: &v "0.9"\n  rand_core: *v\n');
    expect(dependencies).to.deep.equal({ rand: '0.9', rand_core: '0.9' });
  });

  it('warns of unknown keys of a manifest with their locations', () => {
    const { warnings } = readTexts(
      'bundle:\n  name: Pets\n  author: me\nroute: []\nroutes:\n  - { method: GET, path: /, handler: a, code: 1 }\n',
    );
    expect(warnings).to.deep.equal([
      'bundle.yaml, line 4, column 1: route is not a known key and is ignored.',
      'bundle.yaml, line 3, column 3: bundle.author is not a known key and is ignored.',
      'bundle.yaml, line 6, column 41: routes.0.code is not a known key and is ignored.',
    ]);
  });

  const rejected: Record<string, [text: string, message: RegExp, code?: ErrorCode]> = {
    'when it is a list': [
      '- bundle',
      /^bundle\.yaml, line 1, column 1: the manifest: must be an object, not an array/,
    ],
    'when it is text': ['bundle', /the manifest: must be an object, not a string/],
    'when it is not YAML': ['bundle:\n  name: "Pets\n', /^bundle\.yaml, line \d, column \d+: .*quote/],
    'with a key twice': [
      'bundle: {}\nbundle: {}\n',
      /^bundle\.yaml, line 2, column 1: has the key "bundle" twice/,
    ],
    'with a key twice, among very many': [
      `dependencies:\n${Array.from({ length: 50_000 }, (_, index) => `  c${index}: "1"\n`).join('')}  c7: "1"\n`,
      /^bundle\.yaml, line 50002, column 3: has the key "c7" twice/,
    ],
    'with two documents': [
      'bundle: {}\n---\nbundle: {}\n',
      /^bundle\.yaml, line 2, column 1: .*multiple documents/,
    ],
    'with an unresolved alias': [
      'bundle: &a {name: x}\nroutes: [*a, *b]',
      /^bundle\.yaml, line 2, column 14: is not YAML: Unresolved alias .*: b$/,
    ],
    'with an alias bomb': [
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'.replace(/./g, (to, at: number) => {
        const from = 'abcdefgh'[at];
        return `${to}: &${to} [${Array(9).fill(`*${from}`).join(',')}]\n`;
      })}`,
      /^bundle\.yaml: expands more than 100 aliases/,
    ],
    'with deep nesting': ['['.repeat(100_000), /^bundle\.yaml: is nested more than 100 levels deep/],
    'with a name that is a number': [
      'bundle:\n  name: 5',
      /^bundle\.yaml, line 2, column 3: bundle\.name: must be a string/,
    ],
    'with a lone surrogate in its name': [
      'bundle: { name: "a\\ud800b" }',
      /^bundle\.yaml, line 1, column 11: bundle\.name: must be Unicode text without lone surrogates/,
    ],
    'with a lone surrogate in the name of a handler': [
      'routes:\n  - { method: GET, path: /s, handler: "b\\ud800" }\n',
      /^bundle\.yaml, line 2, column 30: routes\.0\.handler: must be Unicode text/,
    ],
    'with the folder of a handler': [
      'routes:\n  - { method: GET, path: /a, handler: handlers/a }\n',
      /^bundle\.yaml, line 2, column 30: routes\.0\.handler: must be a file name without a folder: "a"/,
    ],
    'with an empty name': ['bundle: { name: " " }', /bundle\.name: must not be empty/],
    'with a very long name': [`bundle: { name: ${'x'.repeat(256)} }`, /bundle\.name: must have at most 255/],
    'with routes that are not a list': [
      'routes: { a: 1 }',
      /^bundle\.yaml, line 1, column 1: routes: must be an array/,
    ],
    'with a route without path': [
      'routes:\n  - { method: GET, path: /a, handler: a }\n  - method: GET\n    handler: b\n',
      /^bundle\.yaml, line 3, column 5: routes\.1\.path: is required/,
    ],
    'with a binding under an invalid name': [
      'bindings:\n  "my db": pets\n',
      /^bundle\.yaml, line 2, column 3: bindings\.my db: must be 1 to 64 letters/,
    ],
    'with a binding that names no service': [
      'bindings:\n  db: 7\n',
      /^bundle\.yaml, line 2, column 3: bindings\.db: must be a string/,
    ],
    'with another method': [
      'routes:\n  - method: HEAD\n    path: /a\n    handler: a\n',
      /^bundle\.yaml, line 2, column 5: routes\.0\.method: must be one of GET, POST, PUT, DELETE, PATCH, not "HEAD"/,
    ],
    'with an invalid path': [
      'routes:\n  - method: GET\n    path: pets\n    handler: a\n',
      /^bundle\.yaml, line 3, column 5: routes\.0\.path: must start with "\/"/,
    ],
    'with a path with dot segments': [
      'routes: [{ method: GET, path: /a/../b, handler: a }]',
      /must not have "\." or "\.\."/,
    ],
    'with crates as a list': [
      'dependencies: [serde]',
      /dependencies: must be an object or null, not an array/,
    ],
    'with a crate that is a number': [
      'dependencies:\n  rand: "0.9"\n  regex: 1.10\n',
      /^bundle\.yaml, line 3, column 3: dependencies\.regex: must be a string or an object, not a number/,
      'invalid_dependency',
    ],
    'with a crate from outside': [
      'dependencies:\n  mine:\n    version: "1"\n    path: ../mine\n',
      /^bundle\.yaml, line 4, column 5: dependencies\.mine\.path: must not leave the folder/,
      'invalid_dependency',
    ],
    'with a crate named __proto__': [
      'dependencies:\n  __proto__: "1"\n',
      /dependencies\.__proto__: is not a crate name/,
      'invalid_dependency',
    ],
  };
  for (const [what, [text, message, code]] of Object.entries(rejected)) {
    it(`rejects a manifest ${what}`, () => expectRejected(text, message, code));
  }

  it('lists the first of very many unknown keys of a manifest, in linear time', function () {
    this.timeout(120_000);
    const { warnings } = readTexts(Array.from({ length: 40_000 }, (_, at) => `k${at}: 1\n`).join(''));
    expect(warnings).to.have.lengthOf(51);
    expect(warnings.at(-1)).to.equal('… and 39950 more unknown keys of the manifest');
  });

  it('pollutes no prototypes with the keys of a manifest', () => {
    const { warnings } = readTexts(
      '__proto__: { polluted: true }\nconstructor: { prototype: { polluted: true } }\n',
    );
    expect(warnings).to.have.length(2);
    expect({}).not.to.have.property('polluted');
  });
});
