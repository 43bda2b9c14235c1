/** What one statement cannot use up: memory and the disk. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { sqliteDriver } from '../../../src/actors/drivers/sqlite/driver.js';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import { failsWith } from '../../support/actors.js';
import { connectSql, execute, type SqlConnection, sqlCall, valueText } from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const MEGABYTE = 1024 * 1024;
const MAX_MB = 8;

describe('driver sqlite: limits', () => {
  let folder: TempDir;
  let config: ServiceConfig<'sqlite'>;
  let sql: SqlConnection;

  beforeEach(async () => {
    folder = await tempDir('sqlite-limits');
    config = { path: join(folder.path, 'main.db'), create_if_missing: true, max_size_mb: MAX_MB };
    sql = await connectSql(sqliteDriver, config);
    await execute(sql.connection, 'CREATE TABLE t (a)');
  });
  afterEach(async () => {
    await sql?.connection.close();
    await folder?.remove();
  });

  const refused = (statement: string, operation: 'query' | 'execute' = 'query') =>
    failsWith('backend', sql.connection.call(sqlCall(operation, statement)));
  const megabytes = async (file: string) => (await stat(file)).size / MEGABYTE;
  /** It is still the same process, and it answers. */
  const works = async () => {
    expect(await valueText(sql.connection, 'SELECT 1')).to.equal('1');
    expect(sql.lost).to.deep.equal([]);
  };

  it('values have at most 64 MiB', async () => {
    for (const statement of [
      'SELECT length(zeroblob(250000000)) AS v',
      'INSERT INTO t VALUES (zeroblob(250000000))',
      "SELECT length(replace(hex(zeroblob(30000000)), '0', '00')) AS v",
    ]) {
      const outcome = await sql.connection.call(sqlCall('query', statement)).then(() => 'answered', String);
      expect(outcome, statement).to.include('a value is larger than 64 MiB');
    }
    await works();
  });

  it('the memory of the process is limited', async () => {
    const columns = Array.from({ length: 40 }, (_, i) => `hex(zeroblob(33000000 + ${i})) AS c${i}`);
    expect(await refused(`SELECT ${columns.join(', ')}`)).to.include('may use 1024 MiB');
    await works();
  });

  it('the file does not grow over max_size_mb', async () => {
    const insert = 'INSERT INTO t VALUES (zeroblob(1000000))';
    for (let i = 0; i < MAX_MB - 1; i++) await execute(sql.connection, insert);
    const message = await refused('INSERT INTO t VALUES (zeroblob(3000000))', 'execute');
    expect(message).to.include(`the file may have ${MAX_MB} MiB (max_size_mb`);
    await works();
    await execute(sql.connection, 'DELETE FROM t');
    await execute(sql.connection, insert);
    expect(await megabytes(config.path)).to.be.at.most(MAX_MB);
  });

  it('the write-ahead log is limited, while another program keeps it from becoming shorter', async () => {
    await execute(sql.connection, 'INSERT INTO t VALUES (randomblob(5000000))');
    const reader = new DatabaseSync(config.path);
    let message = '';
    try {
      reader.exec('BEGIN; SELECT count(*) FROM t');
      for (let i = 0; i < 30 && message === ''; i++) {
        const update = sqlCall('execute', 'UPDATE t SET a = randomblob(5000000)');
        message = await sql.connection.call(update).then(() => '', String);
      }
    } finally {
      reader.close();
    }
    expect(message).to.match(/^ServiceError: the write-ahead log has 73 MiB, the maximum/);
    expect(await megabytes(`${config.path}-wal`)).to.be.within(72, 73);
    await works();
    await execute(sql.connection, 'UPDATE t SET a = randomblob(5000000)');
    await execute(sql.connection, 'UPDATE t SET a = 1');
    // What it keeps after it was checkpointed.
    expect(await megabytes(`${config.path}-wal`)).to.be.at.most(16);
  });

  it('a file that is larger already can be read, and made smaller', async () => {
    await sql.connection.close();
    const other = await connectSql(sqliteDriver, { ...config, max_size_mb: 64 });
    for (let i = 0; i < 20; i++)
      await execute(other.connection, 'INSERT INTO t VALUES (randomblob(1000000))');
    await other.connection.close();
    sql = await connectSql(sqliteDriver, config);
    expect(await valueText(sql.connection, 'SELECT count(*) FROM t')).to.equal('20');
    expect(await refused('INSERT INTO t VALUES (zeroblob(1000000))', 'execute')).to.include('max_size_mb');
    await execute(sql.connection, 'DELETE FROM t WHERE rowid > 2');
    await execute(sql.connection, 'INSERT INTO t VALUES (zeroblob(1000000))');
  });

  it('is not limited below the largest answer', async () => {
    const { payload } = await sql.connection.call(sqlCall('query', 'SELECT hex(zeroblob(33000000)) AS v'));
    expect(Buffer.byteLength(payload ?? '')).to.be.above(66_000_000);
  });
});
