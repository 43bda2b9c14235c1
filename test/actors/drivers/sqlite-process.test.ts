import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { servicesOf } from '../../support/process-state.js';
import { type TempDir, tempDir } from '../../support/temp.js';

/** Never ends, and returns no rows. */
const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';

describe('driver sqlite: the process of the file', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite');
  });
  after(() => folder?.remove());

  it('the process of an sqlite service ends with its parent, even during a statement that never ends', async () => {
    const support = (name: string) => new URL(`../../support/${name}.js`, import.meta.url).href;
    const path = join(folder.path, 'files', 'orphan.db');
    await mkdir(dirname(path));
    const config = JSON.stringify({ path, create_if_missing: true });
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
    const child = processOf(parent.pid);
    // The statement is running now.
    await eventually(async () => expect(await processorTime(child)).to.be.above(50));
    const exit = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exit;
    await eventually(() => expect(existsSync(`/proc/${child}`)).to.equal(false));
  });
});

/** The process of the only sqlite service that another has started. */
function processOf(parent = 0): number {
  const [child] = servicesOf(parent).filter(({ command }) => command.includes('sqlite-service'));
  if (!child) throw new Error('It has started no process');
  return child.pid;
}

/** CPU time of a process, hundredths of a second. */
async function processorTime(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[11]);
}
