/** What `edge` sends of a Cargo project: with a deployment, and with the files of an apply. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { edge } from '../support/edge.js';
import { expectData } from '../support/expect.js';
import { addNode } from '../support/nodes.js';
import { type TempDir, tempDir } from '../support/temp.js';

const EDGE_YAML = `stack: shop
domains:
  - host: shop.test
endpoints:
  - {host: shop.test, method: GET, route: /hello, handler: src/hello.rs}
  - {host: shop.test, method: GET, route: /own, handler: src/hello.rs, dependencies: {itoa: "1"}}
  - {host: shop.test, method: GET, route: /none, handler: src/hello.rs, dependencies: {}}
`;
const CARGO_TOML = `[package]
name = "shop"
version = "0.1.0"
edition = "2021"

[dependencies]
rust-edge-gateway-sdk = { version = "0.1", registry = "edge" }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
uuid = { version = "1", features = ["v4"], default-features = false }

[target.'cfg(unix)'.dependencies]
nix = "0.29"

[target.'cfg(windows)'.dependencies]
windows = "0.58"
`;
const CRATES = { nix: '0.29', uuid: { version: '1', features: ['v4'], 'default-features': false } };

interface PlannedChange {
  readonly fields: readonly { readonly path: string; readonly after: unknown }[];
}

describe('edge in a Cargo project', function () {
  this.timeout(60_000);
  let api: TestApi;
  let folder: TempDir;
  const shop = () => join(folder.path, 'shop');
  const options = () => ({
    cwd: shop(),
    env: { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: api.url },
  });
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(shop(), path)), { recursive: true });
    await writeFile(join(shop(), path), text);
  };

  before(async () => {
    folder = await tempDir('cargo');
    // Nobody compiles here.
    api = await startApi({ config: { COMPILE_WAIT_MS: 200 } });
    for (const kind of ['gateway', 'worker'] as const) await addNode(api.store, kind);
    await write('edge.yaml', EDGE_YAML);
    await write('Cargo.toml', CARGO_TOML);
    await write('src/hello.rs', 'use rust_edge_gateway_sdk::prelude::*;\n');
  });
  after(async () => {
    await api?.close();
    await folder.remove();
  });

  it('edge deploy sends the crates of Cargo.toml, unless the endpoint names its own', async () => {
    for (const [path, crates] of [
      ['/hello', CRATES],
      ['/own', { itoa: '1' }],
      ['/none', {}],
    ] as const) {
      await api.store.knex('builds').del();
      const line = EDGE_YAML.split('\n').find((one) => one.includes(`route: ${path},`)) ?? '';
      await write('edge.yaml', `${EDGE_YAML.slice(0, EDGE_YAML.indexOf('  - {'))}${line}\n`);
      const { stderr } = await edge(['deploy'], options());
      expect(stderr).to.include('wait_timeout');
      const sent = await api.store.knex('builds').pluck('dependencies');
      expect(sent, path).to.deep.equal([crates]);
    }
    await write('edge.yaml', EDGE_YAML);
  });

  it('edge diff plans the crates of Cargo.toml', async () => {
    const { stdout, stderr, code } = await edge(['diff', '--adopt', '--json'], options());
    expect(code, stderr).to.equal(0);
    const { changes } = JSON.parse(stdout) as { changes: readonly PlannedChange[] };
    const crates = changes.flatMap(({ fields }) =>
      fields.flatMap(({ path, after }) => (path === 'dependencies' ? [after] : [])),
    );
    expect(crates).to.deep.equal([CRATES, { itoa: '1' }]);
  });

  it('edge deploy and edge diff refuse what a handler cannot have, with file and key', async () => {
    await write(
      'Cargo.toml',
      CARGO_TOML.replace('nix = "0.29"', 'nix = { git = "https://x.example/nix", branch = "main" }'),
    );
    const said =
      "Cargo.toml: target.'cfg(unix)'.dependencies.nix: git needs rev with all 40 digits of a commit";
    for (const args of [['deploy'], ['diff']]) {
      const { code, stderr } = await edge(args, options());
      expect(code).to.equal(1);
      expect(stderr, args[0]).to.include(said);
    }
    await write('Cargo.toml', CARGO_TOML);
  });

  it('edge export writes a Cargo project for editors, and keeps one that is there', async () => {
    const list = expectData<{ id: string; path: string }[]>(await api.get('/api/endpoints'));
    for (const { id, path } of list) {
      const dependencies = path === '/none' ? {} : path === '/own' ? { itoa: '1' } : CRATES;
      expectData(await api.put(`/api/endpoints/${id}`, { code: `// ${path}`, dependencies }));
    }
    const out = join(folder.path, 'exported');
    const { code, stderr } = await edge(['export', '-o', out, '--domain', 'shop.test'], options());
    expect(code, stderr).to.equal(0);
    const manifest = await readFile(join(out, 'Cargo.toml'), 'utf8');
    expect(manifest)
      .to.include('uuid = { version = "1", features = ["v4"], default-features = false }')
      .and.include('itoa = "1"')
      .and.include('registry = "edge"')
      .and.include('[[bin]]');
    expect(await readFile(join(out, 'edge.yaml'), 'utf8')).to.include('dependencies: {}');
    await writeFile(join(out, 'Cargo.toml'), '# mine\n');
    expect((await edge(['export', '-o', out, '--domain', 'shop.test', '--force'], options())).code).to.equal(
      0,
    );
    expect(await readFile(join(out, 'Cargo.toml'), 'utf8')).to.equal('# mine\n');
  });
});
