import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { sqliteDriver } from '../../../src/actors/drivers/sqlite/driver.js';
import { failsWith } from '../../support/actors.js';
import { eventually } from '../../support/eventually.js';
import { connectSql, sqlCall } from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';

/** Never ends, and returns no rows. */
const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';

describe('driver sqlite: the process of the file', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite');
  });
  after(() => folder?.remove());

  it('reports when its process has ended', async () => {
    const config = { path: join(folder.path, 'main.db'), create_if_missing: true };
    const sql = await connectSql(sqliteDriver, config);
    const other = await connectSql(sqliteDriver, config);
    const pids = await childrenOf(process.pid, 'sqlite/process');
    expect(pids).to.have.lengthOf(2);
    const [newest] = pids.sort((a, b) => b - a);
    process.kill(newest ?? 0, 'SIGKILL');
    await eventually(() => expect(other.lost).to.have.lengthOf(1));
    await failsWith('unavailable', other.connection.call(sqlCall('query', 'SELECT 1')));
    await other.connection.close();
    expect(sql.lost).to.deep.equal([]);
    await sql.connection.close();
  });

  it('does not outlive its parent, not even with a statement that never ends', async () => {
    const driver = new URL('../../../src/actors/drivers/sqlite/driver.js', import.meta.url).href;
    const calls = new URL('../../../src/actors/driver-call.js', import.meta.url).href;
    const path = JSON.stringify(join(folder.path, 'orphan.db'));
    const payload = JSON.stringify(JSON.stringify({ sql: ENDLESS }));
    const program = `
      import { sqliteDriver } from '${driver}';
      import { AbortSource, PendingCall } from '${calls}';
      const context = Object.assign(new AbortSource(), { onLost: () => undefined });
      const connection = await sqliteDriver.connect({ path: ${path}, create_if_missing: true }, context);
      connection.run(new PendingCall(Buffer.from(${payload}), 60_000), true);
      setImmediate(() => setImmediate(() => process.stdout.write('running')));
      setInterval(() => undefined, 1_000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(parent.stdout, 'data');
    const [child] = await childrenOf(parent.pid ?? 0, 'sqlite/process');
    if (child === undefined) throw new Error('It has started no process');
    // The statement is running now.
    await eventually(async () => expect(await processorTime(child)).to.be.above(50));
    const exit = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exit;
    await eventually(() => expect(existsSync(`/proc/${child}`)).to.equal(false));
  });
});

/** CPU time of a process, hundredths of a second. */
async function processorTime(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[11]);
}

/** Pids of children of a process whose command line has this text. */
async function childrenOf(parentPid: number, text: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8');
      if (parent === parentPid && commandLine.includes(text)) found.push(Number(pid));
    } catch {
      // It has ended in the meantime.
    }
  }
  return found;
}
