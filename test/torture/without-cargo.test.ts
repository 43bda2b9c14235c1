/** A machine without Rust builds the product with the native programs of another one of its kind. */
import type { ChildProcess } from 'node:child_process';
import { cp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { numbered } from '../support/handler-sources.js';
import { freePort } from '../support/ports.js';
import { frontOf } from '../support/process-state.js';
import { startStack } from '../support/processes.js';
import { SECRET_KEY } from '../support/test-services.js';
import { type CopyWithoutCargo, copyWithoutCargo, ended } from '../support/without-cargo.js';

describe('a machine without cargo', () => {
  let copy: CopyWithoutCargo;
  before(async () => {
    copy = await copyWithoutCargo();
  });
  after(() => copy?.remove());

  it('builds without cargo from the programs of a copied dist/, starts them, and serves a handler', async () => {
    const { mtimeMs } = await stat(copy.at('dist/native/gateway-front'));
    const { status, output } = copy.build();
    expect(status, output).to.equal(0);
    expect((await stat(copy.at('dist/native/gateway-front'))).mtimeMs).to.equal(mtimeMs);

    // Another machine compiles, and keeps the executables.
    const other = await startStack({ processes: ['web', 'worker'], env: { SECRET_KEY } });
    const env = {
      SECRET_KEY,
      DATABASE_URL: other.databaseUrl,
      ARTIFACTS_URL: join(other.dataDir, 'artifacts'),
      DATA_DIR: join(copy.folder, 'data'),
      GATEWAY_PORT: String(await freePort()),
    };
    let gateway: ChildProcess | undefined;
    try {
      gateway = await copy.start('gateway', env);
      expect(frontOf(gateway.pid ?? 0)).to.be.a('number');
      await other.deploy({ path: '/served', code: numbered(1) });
      const served = await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/served`);
      expect([served.status, await served.text()]).to.deep.equal([200, '1 ']);
    } finally {
      if (gateway) await ended(gateway);
      await other.close();
    }
  }).timeout(120_000);

  it('builds without cargo from the programs of a copied cache', async () => {
    const files = await readdir(copy.at('dist/native'));
    const groups = files.flatMap((file) => /^(\w+)\.sources$/.exec(file)?.[1] ?? []);
    expect(groups).to.include.members(['front', 'services']);
    const keys = await Promise.all(
      groups.map((name) => readFile(copy.at(`dist/native/${name}.sources`), 'utf8')),
    );
    const { glibcVersionRuntime = 'musl' } = (
      process.report.getReport() as { header: Record<string, string> }
    ).header;
    for (const key of keys) {
      const cached = `cache/edge-gateway/native/${key}-${process.arch}-${glibcVersionRuntime}`;
      await cp(copy.at('dist/native'), join(copy.folder, cached), { recursive: true });
    }
    await rm(copy.at('dist/native'), { recursive: true });
    const { status, output } = copy.build();
    expect(status, output).to.equal(0);
    for (const [index, name] of groups.entries())
      expect(await readFile(copy.at(`dist/native/${name}.sources`), 'utf8')).to.equal(keys[index]);
    await rm(join(copy.folder, 'cache'), { recursive: true });
  });
});
