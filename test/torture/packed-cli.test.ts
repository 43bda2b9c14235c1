/**
 * What `edge init` makes is checked and tested by cargo, with the SDK of a gateway and nothing of a checkout; in a home
 * that has nothing of cargo, and with `edge` as npm packs it.
 */
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { startApi, type TestApi } from '../support/api.js';
import { type CrateRegistry, startCrateRegistry } from '../support/crate-registry.js';
import { edge } from '../support/edge.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('cargo in folders of edge init', function () {
  this.timeout(600_000);
  let folder: TempDir;
  let api: TestApi;
  let cratesIo: CrateRegistry;
  before(async () => {
    folder = await tempDir('packed');
    api = await startApi();
    cratesIo = await startCrateRegistry([]);
  });
  after(async () => {
    await cratesIo?.close();
    await api?.close();
    await folder.remove();
  });

  /** In one target folder: crates are compiled once. */
  const expectTested = async (cwd: string) => {
    const env = { CARGO_TARGET_DIR: join(folder.path, 'target'), CARGO_HOME: cratesIo.cargoHome };
    // Versions that this machine has.
    await cp('rust/sdk/Cargo.lock', join(cwd, 'Cargo.lock'));
    const { stdout } = await execa('cargo', ['test'], { cwd, env });
    expect(stdout)
      .to.match(/test tests::greets_by_name \.\.\. ok/)
      .and.match(/1 passed/);
  };

  it('cargo test passes in a folder of edge init', async () => {
    const env = { EDGE_URL: api.url };
    const { code, stderr } = await edge(['init', 'hello'], { cwd: folder.path, env });
    expect(code, stderr).to.equal(0);
    await expectTested(join(folder.path, 'hello'));
  });

  it('npm pack makes a package of edge that works alone, and whose projects need no checkout', async () => {
    const modules = join(folder.path, 'node_modules');
    const installed = join(modules, '@edge-gateway/cli');
    await mkdir(join(modules, '@edge-gateway'), { recursive: true });
    const pack = ['pack', '--silent', '--pack-destination', folder.path];
    const { stdout: archive } = await execa('npm', pack, { cwd: 'cli' });
    await execa('tar', ['-xzf', archive.trim()], { cwd: folder.path });
    await rename(join(folder.path, 'package'), installed);
    const { dependencies } = JSON.parse(await readFile('cli/package.json', 'utf8'));
    expect(Object.keys(dependencies)).to.have.members(['commander', 'smol-toml', 'undici', 'yaml']);
    for (const name of Object.keys(dependencies))
      await cp(`cli/node_modules/${name}`, join(modules, name), { recursive: true }).catch(() =>
        cp(`node_modules/${name}`, join(modules, name), { recursive: true }),
      );
    const program = join(installed, 'bin/edge.js');
    const env = { XDG_CONFIG_HOME: join(folder.path, 'nothing'), EDGE_URL: '', EDGE_TOKEN: '' };
    const packed = (args: string[], url = '') =>
      execa(process.execPath, [program, ...args], { cwd: folder.path, env: { ...env, EDGE_URL: url } });
    expect((await packed(['--version'])).stdout).to.match(/^\d+\.\d+\.\d+$/);
    await packed(['init', 'shop'], api.url);
    const shop = join(folder.path, 'shop');
    // In no checkout: there is none to start a gateway of.
    const dev = await execa(process.execPath, [program, 'dev'], { cwd: shop, env, reject: false });
    expect(dev.exitCode).to.equal(1);
    expect(dev.stderr).to.include('npm run up').and.include('edge login');
    expect(await readFile(join(shop, '.cargo/config.toml'), 'utf8')).to.include(`sparse+${api.url}/crates/`);
    await rm(modules, { recursive: true });
    await expectTested(shop);
  });
});
