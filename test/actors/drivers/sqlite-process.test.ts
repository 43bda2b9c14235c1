import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { type TempDir, tempDir } from '../../support/temp.js';

/** Never ends, and returns no rows. */
const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';

describe('driver sqlite: the process of the file', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite');
  });
  after(() => folder?.remove());

  it('does not outlive its parent, not even with a statement that never ends', async () => {
    const support = (name: string) => new URL(`../../support/${name}.js`, import.meta.url).href;
    const config = JSON.stringify({ path: join(folder.path, 'orphan.db'), create_if_missing: true });
    const program = `
      import { sqliteService } from '${support('native-service')}';
      import { connectSql, sqlCall } from '${support('sql-calls')}';
      const { connection } = await connectSql(sqliteService, ${config});
      process.stdout.write('connected');
      await connection.call(sqlCall('query', '${ENDLESS}'));`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // What it leaves there is removed with the folder.
      env: { ...process.env, TMPDIR: folder.path },
    });
    await once(parent.stdout, 'data');
    const [child] = await childrenOf(parent.pid ?? 0, 'sqlite-service');
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
