/** The memory of the process of an sqlite service, with statements and answers as large as they may be. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { failsWith } from '../support/actors.js';
import { eventually } from '../support/eventually.js';
import { sqliteService } from '../support/native-service.js';
import { servicesOf } from '../support/process-state.js';
import { connectSql, sqlCall } from '../support/sql-calls.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('driver sqlite: memory', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite');
  });
  after(() => folder?.remove());

  it('the process of an sqlite service gives memory back after large statements, and has it for large answers', async () => {
    const config = { path: join(folder.path, 'large.db'), create_if_missing: true };
    const { connection } = await connectSql(sqliteService, config);
    const [service] = servicesOf(process.pid).filter(({ command }) => command.includes('sqlite-service'));
    if (!service) throw new Error('It has started no process');
    const query = (sql: string) => connection.call(sqlCall('query', sql));
    for (let i = 1; i <= 4; i++) {
      await failsWith('backend', query(`SELECT 1 IN (${'1,'.repeat(i * 1_000_000 + 5_000_000)}1)`));
      await failsWith('backend', query(`SELECT 1 IN (${'abs(1),'.repeat(i * 500_000 + 500_000)}1)`));
    }
    await eventually(async () => expect(await residentMb(service.pid)).to.be.below(100));
    // Where answers before it are not read within a second, there is no memory for one yet.
    const large = () => eventually(() => query('SELECT hex(zeroblob(33000000))'));
    await Promise.all(Array.from({ length: 24 }, large));
    await connection.close();
  });
});

/** Memory that a process has of the machine, MiB. */
async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}
