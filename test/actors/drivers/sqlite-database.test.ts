import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SqliteDatabase } from '../../../src/actors/drivers/sqlite/database.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('an open SQLite file', () => {
  let folder: TempDir;
  let database: SqliteDatabase;

  beforeEach(async () => {
    folder = await tempDir('sqlite');
    database = new SqliteDatabase(join(folder.path, 'main.db'), 'create', 1024);
    run('CREATE TABLE t (a)');
  });
  afterEach(async () => {
    database.close();
    await folder.remove();
  });

  const run = (sql: string) => database.run({ sql, params: [] }, true, false).text;

  it('is rolled back when a statement has left a transaction open', () => {
    database.control('BEGIN');
    expect(() => run('INSERT INTO t VALUES (1)'))
      .to.throw(ServiceError, 'left a transaction open')
      .with.property('kind', 'invalid');
    expect(database.isInTransaction).to.equal(false);
    run('INSERT INTO t VALUES (2)');
    expect(run('SELECT a FROM t')).to.include('"rows":[[2]]');
  });

  it('attaches no other file, in any spelling', () => {
    const other = join(folder.path, 'other.db');
    expect(() => database.control(`ATTACH '${other}' AS "o""ther"`)).to.throw('not authorized');
    expect(existsSync(other)).to.equal(false);
    run('CREATE TEMP TABLE mine (a)');
    run('INSERT INTO mine VALUES (1)');
    run('VACUUM');
  });

  it('accepts one statement at a time, and a trigger as one', () => {
    for (const sql of [
      'SELECT 1; SELECT 2',
      'SELECT 1;;;SELECT 2;',
      'SELECT 1; x',
      '',
      ';',
      ' -- nothing',
      '/* */;',
    ])
      expect(() => run(sql), JSON.stringify(sql)).to.throw(ServiceError, 'statement');
    expect(run("SELECT ';' ; -- SELECT 2")).to.include('[[";"]]');
    run('CREATE TEMP TRIGGER twice AFTER INSERT ON t BEGIN UPDATE t SET a = 2 * new.a; SELECT 1; END;');
    run('INSERT INTO t VALUES (4)');
    expect(run('SELECT a FROM t')).to.include('[[8]]');
  });

  it('counts what a statement with rows has changed', () => {
    expect(run('INSERT INTO t VALUES (1), (2) RETURNING a')).to.include(
      '"rows_affected":2,"last_insert_id":2',
    );
    expect(run('WITH x AS (SELECT 1) SELECT * FROM x')).to.include('"rows_affected":0,"last_insert_id":null');
    expect(run('UPDATE t SET a = 3 WHERE a = 9 RETURNING a')).to.include('"rows_affected":0');
    expect(run('WITH x AS (SELECT 1) UPDATE t SET a = 3 RETURNING a')).to.include('"rows_affected":2');
  });

  it('is not left with a byte order mark in front of what is refused', () => {
    const other = join(folder.path, 'other.db');
    for (const mark of ['\ufeff', ' \ufeff\ufeff ', '/**/\ufeff', ';\ufeff']) {
      for (const sql of [
        ...[
          `ATTACH '${other}' AS o`,
          'DETACH main',
          `VACUUM INTO '${other}'`,
          `VACUUM \ufeffINTO '${other}'`,
        ],
        ...['BEGIN', 'PRAGMA foreign_keys = OFF', 'PRAGMA \ufeffforeign_keys = OFF'],
        ...['EXPLAIN \ufeffPRAGMA foreign_keys = OFF'],
      ]) {
        expect(() => run(mark + sql), JSON.stringify(mark + sql))
          .to.throw(ServiceError, 'is not possible here')
          .with.property('kind', 'invalid');
      }
      expect(run(`${mark}SELECT \ufeff1`)).to.include('[[1]]');
    }
    expect(existsSync(other)).to.equal(false);
    expect(run('SELECT foreign_keys FROM pragma_foreign_keys')).to.include('[[1]]');
  });
});
