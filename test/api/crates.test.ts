/** The SDK as a registry, as cargo sees it. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { execa } from 'execa';
import { startApi, type TestApi } from '../support/api.js';
import { type CrateRegistry, startCrateRegistry } from '../support/crate-registry.js';
import { expectFailure } from '../support/expect.js';
import { type TempDir, tempDir } from '../support/temp.js';

const SDK = 'rust-edge-gateway-sdk';
const CARGO_KEY = 'key-without-spaces';

describe('the registry of the SDK', function () {
  this.timeout(300_000);
  let api: TestApi;
  let closed: TestApi;
  let cratesIo: CrateRegistry;
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('crates');
    api = await startApi();
    closed = await startApi({ config: { API_KEY: CARGO_KEY } });
    cratesIo = await startCrateRegistry([]);
  });
  after(async () => {
    await cratesIo?.close();
    await closed?.close();
    await api?.close();
    await folder.remove();
  });

  const bytesAt = async (url: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url, { headers });
    return {
      status: response.status,
      headers: response.headers,
      bytes: Buffer.from(await response.arrayBuffer()),
    };
  };
  const entryOf = async (name: string) => {
    const { status, bytes } = await bytesAt(`${api.url}/crates/ru/st/${name}`);
    expect(status).to.equal(200);
    return JSON.parse(bytes.toString());
  };

  it('serves each crate with the checksum of its index, and the version that its content makes', async () => {
    const { bytes } = await bytesAt(`${api.url}/crates/config.json`);
    const { dl, ...others } = JSON.parse(bytes.toString());
    expect(others).to.deep.equal({ 'auth-required': false });
    for (const name of [SDK, `${SDK}-core`]) {
      const { vers, cksum, deps } = await entryOf(name);
      expect(vers).to.match(/^0\.1\.0\+[0-9a-f]{12}$/);
      const url = dl.replace('{crate}', name).replace('{version}', vers);
      const { status, bytes: archive } = await bytesAt(url);
      expect(status).to.equal(200);
      expect(createHash('sha256').update(archive).digest('hex')).to.equal(cksum);
      const tar = gunzipSync(archive).toString('latin1');
      expect(tar).to.include('src/lib.rs').and.include(`version = "${vers}"`);
      expect(deps.map(({ name }: { name: string }) => name)).to.include('serde');
      expect(await entryOf(name)).to.include({ vers, cksum });
    }
  });

  it('makes another version of the SDK for another address, by which its manifest names the core', async () => {
    const { port } = new URL(api.url);
    const [one, other] = await Promise.all(
      ['127.0.0.1', 'localhost'].map(async (host) => {
        const { bytes } = await bytesAt(`http://${host}:${port}/crates/ru/st/${SDK}`);
        return JSON.parse(bytes.toString());
      }),
    );
    expect(one.vers).not.to.equal(other.vers);
    const url = `http://localhost:${port}/crates/files/${SDK}-${other.vers}.crate`;
    expect(gunzipSync((await bytesAt(url)).bytes).toString('latin1')).to.include(
      `registry-index = "sparse+http://localhost:${port}/crates/"`,
    );
  });

  it('answers 304 to what a client has, 404 to other crates, and 405 to other methods', async () => {
    const path = `/crates/ru/st/${SDK}`;
    const { etag } = (await api.get(path)).headers;
    expect((await api.get(path, { headers: { 'if-none-match': String(etag) } })).status).to.equal(304);
    for (const other of ['/crates/se/rd/serde', '/crates/', `/crates/files/${SDK}-0.1.0.crate`])
      expectFailure(await api.get(other), 'not_found');
    expectFailure(await api.send('PUT', '/crates/api/v1/crates/new'), 'method_not_allowed');
  });

  /** A project in a home of its own, in which nothing of cargo is but what replaces crates.io. */
  async function project(name: string, url: string): Promise<{ cwd: string; env: Record<string, string> }> {
    const [cwd, home] = [join(folder.path, name), join(folder.path, `${name}-home`)];
    await mkdir(join(cwd, 'src'), { recursive: true });
    await mkdir(join(cwd, '.cargo'));
    await mkdir(home);
    await writeFile(join(home, 'config.toml'), await readFile(join(cratesIo.cargoHome, 'config.toml')));
    await writeFile(
      join(cwd, '.cargo/config.toml'),
      `[registries.edge]\nindex = "sparse+${url}/crates/"\ncredential-provider = "cargo:token"\n`,
    );
    await writeFile(
      join(cwd, 'Cargo.toml'),
      `[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n[dependencies]\n${SDK} = { version = "0.1", registry = "edge", features = ["async"] }\n`,
    );
    await writeFile(join(cwd, 'src/main.rs'), 'fn main() {}\n');
    // Versions that this machine has.
    await writeFile(join(cwd, 'Cargo.lock'), await readFile('rust/sdk/Cargo.lock'));
    return { cwd, env: { CARGO_HOME: home, CARGO_TERM_COLOR: 'never' } };
  }

  const metadata = ['metadata', '--format-version', '1'];

  it('cargo resolves and downloads the SDK without a token where the API is open, also once more from its lock', async () => {
    const options = await project('open', api.url);
    const { stdout } = await execa('cargo', metadata, options);
    const packages = JSON.parse(stdout).packages as { name: string; source: string | null }[];
    const ours = packages.filter(({ name }) => name.startsWith(SDK));
    expect(ours.map(({ source }) => source)).to.deep.equal(Array(2).fill(`sparse+${api.url}/crates/`));
    const lock = await readFile(join(options.cwd, 'Cargo.lock'), 'utf8');
    expect(lock).to.include(`source = "sparse+${api.url}/crates/"`);
    expect(lock).to.include((await entryOf(SDK)).cksum);
    await execa('cargo', [...metadata, '--locked'], options);
    // As with the SDK of a gateway before, which cargo had downloaded, too.
    const [sdk, core] = [await entryOf(SDK), await entryOf(`${SDK}-core`)];
    const old = [sdk, core].reduce(
      (text, { vers, cksum }) => text.replaceAll(vers, '0.1.0+000000000000').replace(cksum, '0'.repeat(64)),
      lock,
    );
    await writeFile(join(options.cwd, 'Cargo.lock'), old);
    const { stderr } = await execa('cargo', metadata, { ...options, reject: false });
    expect(stderr).to.include('(locked to 0.1.0+000000000000)');
    await execa('cargo', ['update', SDK], options);
    expect(await readFile(join(options.cwd, 'Cargo.lock'), 'utf8')).to.equal(lock);
    const vendor = ['vendor', '--locked', '--respect-source-config', 'vendor'];
    const vendored = await execa('cargo', vendor, options);
    const config = vendored.stdout;
    await writeFile(
      join(options.cwd, '.cargo/config.toml'),
      `[registries.edge]\nindex = "sparse+${api.url}/crates/"\n${config}`,
    );
    await execa('cargo', [...metadata, '--locked', '--offline'], options);
  });

  it('cargo needs a token where the API is closed, and says so', async () => {
    const { cwd, env } = await project('closed', closed.url);
    const refused = await execa('cargo', metadata, { cwd, env, reject: false });
    expect(refused.exitCode).not.to.equal(0);
    expect(refused.stderr).to.include('CARGO_REGISTRIES_EDGE_TOKEN');
    const wrong = { ...env, CARGO_REGISTRIES_EDGE_TOKEN: 'wrong' };
    expect((await execa('cargo', metadata, { cwd, env: wrong, reject: false })).stderr).to.include('401');
    await execa('cargo', metadata, { cwd, env: { ...env, CARGO_REGISTRIES_EDGE_TOKEN: CARGO_KEY } });
  });
});
