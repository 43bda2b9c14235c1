/** Local crates of a source: which files they have, and what cargo gets as their manifests. */
import { expect } from 'chai';
import { parse } from 'smol-toml';
import { type LocalCrates, localCratesOf } from '../../src/build/local-crates.js';
import { CargoProblem } from '../../src/model/cargo-manifest.js';
import type { Dependencies } from '../../src/model/crates.js';

const files = (texts: Readonly<Record<string, string>>) =>
  new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
const crate = (name: string, more = '') => `[package]\nname = "${name}"\nversion = "0.1.0"\n${more}`;
const path = (folder: string) => ({ path: folder });

describe('local crates of a source', () => {
  const crates = (dependencies: Dependencies, contents: ReadonlyMap<string, Buffer>) =>
    localCratesOf(dependencies, { contents, allowed: [], target: 'x86_64-unknown-linux-gnu' });
  const manifest = (crates: LocalCrates, file: string) =>
    parse(`${crates.files.get(file)?.toString('utf8')}`);

  it('are those that the handler depends on, and those below them, without the rest', async () => {
    const contents = files({
      'Cargo.toml': crate('project', '[workspace]\nmembers = ["crates/*"]'),
      'crates/a/Cargo.toml': crate('a', '[dependencies]\nb = { path = "../b" }'),
      'crates/a/src/lib.rs': '',
      'crates/b/Cargo.toml': crate('b'),
      'crates/b/src/lib.rs': '',
      'crates/c/Cargo.toml': crate('c'),
      'util.rs': '',
    });
    const found = await crates({ a: path('crates/a') }, contents);
    expect([...found.files.keys()]).to.deep.equal([
      'crates/a/Cargo.toml',
      'crates/a/src/lib.rs',
      'crates/b/Cargo.toml',
      'crates/b/src/lib.rs',
    ]);
    expect(manifest(found, 'crates/a/Cargo.toml')['dependencies']).to.deep.equal({ b: { path: '../b' } });
    expect(await crates({ serde: '1' }, contents)).to.deep.include({ digest: '' });
  });

  it('inherit what their workspace says', async () => {
    const contents = files({
      'Cargo.toml': [
        '[workspace.package]\nversion = "2.0.0"\nedition = "2024"',
        '[workspace.dependencies]\nserde = { version = "1", features = ["derive"] }\nshared = { path = "lib/shared" }',
      ].join('\n'),
      'lib/a/Cargo.toml': [
        '[package]\nname = "a"\nversion.workspace = true\nedition.workspace = true\nauthors = ["me"]',
        '[dependencies]\nserde = { workspace = true, features = ["rc"] }\nshared.workspace = true',
        '[dev-dependencies]\nunused = { git = "https://elsewhere" }\n[profile.release]\nlto = true',
      ].join('\n'),
      'lib/shared/Cargo.toml': crate('shared'),
    });
    const written = manifest(await crates({ a: path('lib/a') }, contents), 'lib/a/Cargo.toml');
    expect(written['package']).to.include({ name: 'a', version: '2.0.0', edition: '2024' });
    expect(written['dependencies']).to.deep.equal({
      serde: { version: '1', features: ['derive', 'rc'] },
      shared: { path: '../shared' },
    });
    expect(written).to.have.all.keys('package', 'dependencies');
  });

  it('have the SDK of the gateway, wherever their authors have it from', async () => {
    const contents = files({
      'Cargo.toml': [
        '[workspace]\n[workspace.dependencies]',
        'rust-edge-gateway-sdk = { version = "0.1", registry = "edge", features = ["async"] }',
      ].join('\n'),
      'a/Cargo.toml': crate(
        'a',
        '[dependencies]\nrust-edge-gateway-sdk = { path = "../../sdk", optional = true }',
      ),
      'b/Cargo.toml': crate('b', '[dependencies]\nrust-edge-gateway-sdk.workspace = true'),
      'c/Cargo.toml': crate('c'),
    });
    const found = await crates({ a: path('a'), b: path('b') }, contents);
    const written = (file: string) => manifest(found, file)['dependencies'];
    expect(written('a/Cargo.toml')).to.deep.equal({
      'rust-edge-gateway-sdk': { workspace: true, optional: true },
    });
    expect(written('b/Cargo.toml')).to.deep.equal({
      'rust-edge-gateway-sdk': { workspace: true, features: ['async'] },
    });
    expect([...found.files.keys()]).to.deep.equal(['a/Cargo.toml', 'b/Cargo.toml']);
  });

  it('have the crates of the handler where the own library of the source has no manifest', async () => {
    const found = await crates({ project: path('.'), uuid: '1' }, files({ 'src/lib.rs': '' }));
    const written = manifest(found, 'Cargo.toml');
    expect(written['package']).to.include({ name: 'project' });
    expect(written['dependencies']).to.deep.equal({ uuid: { version: '1' } });
  });

  it('have the dependencies of the target alone', async () => {
    const named = crate(
      'a',
      '[target.\'cfg(unix)\'.dependencies]\none = "1"\n[target.\'cfg(windows)\'.dependencies]\ntwo = "1"',
    );
    const found = await crates({ a: path('a') }, files({ 'a/Cargo.toml': named }));
    expect(manifest(found, 'a/Cargo.toml')['dependencies']).to.deep.equal({ one: { version: '1' } });
  });

  it('end when they are a cycle, which cargo refuses', async () => {
    const contents = files({
      'a/Cargo.toml': crate('a', '[dependencies]\nb = { path = "../b" }'),
      'b/Cargo.toml': crate('b', '[dependencies]\na = { path = "../a" }'),
    });
    expect((await crates({ a: path('a') }, contents)).files.size).to.equal(2);
  });

  it('differ when any of their files does', async () => {
    const digest = async (text: string) =>
      (await crates({ a: path('a') }, files({ 'a/Cargo.toml': crate('a'), 'a/src/lib.rs': text }))).digest;
    expect(await digest('1'))
      .to.equal(await digest('1'))
      .and.not.equal(await digest('2'));
  });

  const refused: readonly (readonly [what: string, text: string | undefined, message: RegExp])[] = [
    ['there is no manifest', undefined, /^a\/Cargo\.toml: there is no package/],
    ['it is no TOML', '[package', /^a\/Cargo\.toml:1: is not valid TOML/],
    ['it has no package', '[dependencies]', /^a\/Cargo\.toml: there is no package/],
    [
      'a path leaves the source',
      crate('a', '[dependencies]\nb = { path = "../../etc" }'),
      /^a\/Cargo\.toml: .*path/,
    ],
    [
      'a source of crates is another',
      crate('a', '[dependencies]\nb = { git = "https://x.example/y" }'),
      /git/,
    ],
    [
      'the workspace lacks what it inherits',
      crate('a', '[dependencies]\nb.workspace = true'),
      /dependencies\.b: workspace/,
    ],
  ];
  for (const [what, text, message] of refused)
    it(`are refused with the file where ${what}`, async () => {
      const contents = files(text === undefined ? {} : { 'a/Cargo.toml': text });
      const problem = await crates({ a: path('a') }, contents).catch((thrown: unknown) => thrown);
      expect(problem).to.be.instanceOf(CargoProblem).with.property('message').that.matches(message);
    });
});
