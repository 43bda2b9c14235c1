/** What one statement cannot use up: memory and the disk. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import { failsWith } from '../../support/actors.js';
import { eventually } from '../../support/eventually.js';
import { sqliteService } from '../../support/native-service.js';
import { connectSql, execute, type SqlConnection, sqlCall, valueText } from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const MEGABYTE = 1024 * 1024;
const MAX_MB = 8;
const LARGE = 5_000_000;
const UPDATE = `UPDATE t SET a = randomblob(${LARGE})`;

describe('driver sqlite: limits', () => {
  let folder: TempDir;
  let config: ServiceConfig<'sqlite'>;
  let sql: SqlConnection;

  beforeEach(async () => {
    folder = await tempDir('sqlite-limits');
    config = { path: join(folder.path, 'main.db'), create_if_missing: true, max_size_mb: MAX_MB };
    sql = await connectSql(sqliteService, config);
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

  it('values of SQLite have at most 64 MiB', async () => {
    for (const statement of [
      'SELECT length(zeroblob(250000000)) AS v',
      'INSERT INTO t VALUES (zeroblob(250000000))',
      "SELECT length(replace(hex(zeroblob(30000000)), '0', '00')) AS v",
    ]) {
      const outcome = await sql.connection.call(sqlCall('query', statement)).then(() => 'answered', String);
      expect(outcome, statement).to.include('a value or row is larger than 64 MiB');
    }
    await works();
  });

  it('the memory of the process of an sqlite service is limited', async () => {
    const columns = Array.from({ length: 40 }, (_, i) => `hex(zeroblob(33000000 + ${i})) AS c${i}`);
    expect(await refused(`SELECT ${columns.join(', ')}`)).to.include('may use 1024 MiB');
    await works();
  });

  it('the longest patterns of SQLite fit on the stack', async () => {
    for (const [operator, pattern] of [
      ['LIKE', '%a'],
      ['GLOB', '*a'],
    ] as const) {
      const params = ['a'.repeat(60_000), pattern.repeat(25_000)];
      const { payload } = await sql.connection.call(sqlCall('query', `SELECT ? ${operator} ? AS v`, params));
      expect(String(payload)).to.include('"rows":[[1]]');
    }
    await works();
  });

  it('SQLite refuses statements with too many placeholders, however long', async () => {
    for (const placeholder of ['?', '?1', ':a', '?32767 ']) {
      const length = (placeholder === '?' ? 60 : 10) * MEGABYTE;
      const statement = `SELECT ${placeholder.repeat(length / placeholder.length)}`;
      await failsWith(
        'backend',
        sql.connection.call(sqlCall('query', statement, placeholder.length === 2 ? [1] : [])),
      );
    }
    let names = '';
    for (let i = 0; names.length < 10 * MEGABYTE; i++) names += `:${i.toString(36)}`;
    await failsWith('backend', sql.connection.call(sqlCall('query', `SELECT ${names}`)));
    const many = `SELECT 1 IN (${'?, '.repeat(20 * MEGABYTE)}1)`;
    const message = await failsWith('backend', sql.connection.call(sqlCall('query', many)));
    expect(message).to.include('too many SQL variables');
    await works();
  });

  it('the file of an sqlite service does not grow over max_size_mb', async () => {
    const insert = 'INSERT INTO t VALUES (zeroblob(1000000))';
    for (let i = 0; i < MAX_MB - 1; i++) await execute(sql.connection, insert);
    const message = await refused('INSERT INTO t VALUES (zeroblob(3000000))', 'execute');
    expect(message).to.include(`the file may have ${MAX_MB} MiB (max_size_mb`);
    await works();
    await execute(sql.connection, 'DELETE FROM t');
    await execute(sql.connection, insert);
    expect(await megabytes(config.path)).to.be.at.most(MAX_MB);
  });

  describe('the write-ahead log that another program keeps from becoming shorter', () => {
    let reader: InstanceType<typeof DatabaseSync>;
    beforeEach(async () => {
      await execute(sql.connection, `INSERT INTO t VALUES (randomblob(${LARGE}))`);
      reader = new DatabaseSync(config.path);
      reader.exec('BEGIN; SELECT count(*) FROM t');
    });
    afterEach(() => reader.isOpen && reader.close());

    const fill = async () => {
      let message = '';
      for (let i = 0; i < 30 && message === ''; i++)
        message = await sql.connection.call(sqlCall('execute', UPDATE)).then(() => '', String);
      return message;
    };

    it('the write-ahead log of SQLite does not grow over its limit, and becomes shorter afterwards', async () => {
      expect(await fill()).to.match(/^ServiceError: the write-ahead log has 73 MiB, the maximum/);
      expect(await megabytes(`${config.path}-wal`)).to.be.within(72, 73);
      await works();
      reader.close();
      await execute(sql.connection, UPDATE);
      await execute(sql.connection, 'UPDATE t SET a = 1');
      // What it keeps when it begins anew.
      expect(await megabytes(`${config.path}-wal`)).to.be.at.most(16);
    });

    it('a write-ahead log at its limit does not keep a transaction of SQLite open', async () => {
      await fill();
      reader.close();
      const transaction = await sql.begin();
      await failsWith('backend', transaction.call(sqlCall('execute', 'no such statement')));
      await execute(transaction, UPDATE);
      await transaction.rollback();
      await execute(sql.connection, UPDATE);
      await works();
    });
  });

  it('a file of SQLite that is larger than max_size_mb can be read, changed and made smaller', async () => {
    await sql.connection.close();
    const maker = new DatabaseSync(config.path);
    for (let i = 0; i < 90; i++) maker.exec('INSERT INTO t VALUES (randomblob(1000000))');
    maker.close();
    sql = await connectSql(sqliteService, config);
    expect(await refused('INSERT INTO t VALUES (zeroblob(1000000))', 'execute')).to.include('max_size_mb');
    for (let i = 0; i < 3; i++) await execute(sql.connection, 'UPDATE t SET a = randomblob(1000000)');
    expect(await valueText(sql.connection, 'SELECT count(*) FROM t')).to.equal('90');
    await execute(sql.connection, 'DELETE FROM t WHERE rowid > 2');
    await execute(sql.connection, 'VACUUM');
    await sql.connection.close();
    expect(await megabytes(config.path)).to.be.at.most(MAX_MB);
    sql = await connectSql(sqliteService, config);
    await execute(sql.connection, 'INSERT INTO t VALUES (zeroblob(1000000))');
  });

  it('temporary files of SQLite are limited, and the connection stays', async () => {
    const rows =
      'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) SELECT randomblob(1000000) AS v FROM c';
    expect(await refused(`SELECT length(v) FROM (${rows} ORDER BY v)`)).to.include(
      'a temporary file may have',
    );
    await works();
  });

  it('SQLite sends many large answers that were requested at once', async () => {
    const large = () => sql.connection.call(sqlCall('query', 'SELECT hex(zeroblob(30000000)) AS v'));
    // There is memory for half of them at a time: who reads slowly is told to try again later.
    const lengthOf = () => eventually(async () => Buffer.byteLength((await large()).payload ?? ''));
    const lengths = await Promise.all(Array.from({ length: 14 }, lengthOf));
    expect(new Set(lengths).size).to.equal(1);
    await works();
  });

  it('an error that a trigger of SQLite raises has its text, whatever it is', async () => {
    for (const name of ['constructor', 'toString', '__defineGetter__', '__proto__']) {
      await execute(
        sql.connection,
        `CREATE TRIGGER raise_${name} BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, '${name}'); END`,
      );
      expect(await refused('INSERT INTO t VALUES (1)', 'execute')).to.include(name);
      await execute(sql.connection, `DROP TRIGGER raise_${name}`);
    }
    await works();
  });

  it('the limits of SQLite allow an answer of 66 MB', async () => {
    const { payload } = await sql.connection.call(sqlCall('query', 'SELECT hex(zeroblob(33000000)) AS v'));
    expect(Buffer.byteLength(payload ?? '')).to.be.above(66_000_000);
  });
});
