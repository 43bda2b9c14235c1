import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SqliteDatabase } from '../../../src/actors/drivers/sqlite-database.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('an open SQLite file', () => {
  let folder: TempDir;
  let database: SqliteDatabase;

  beforeEach(async () => {
    folder = await tempDir('sqlite');
    database = new SqliteDatabase(join(folder.path, 'main.db'), 'create');
    run('CREATE TABLE t (a)');
  });
  afterEach(async () => {
    database.close();
    await folder.remove();
  });

  const run = (sql: string) => database.run({ sql, params: [] }, true, false).text;

  it('is rolled back when a transaction was left open, whatever has opened it', () => {
    database.control('BEGIN');
    expect(() => run('INSERT INTO t VALUES (1)'))
      .to.throw(ServiceError, 'left a transaction open')
      .with.property('kind', 'invalid');
    expect(database.isInTransaction).to.equal(false);
    run('INSERT INTO t VALUES (2)');
    expect(run('SELECT a FROM t')).to.include('"rows":[[2]]');
  });

  it('has no other file next to it after a statement, whatever has attached it', () => {
    database.control(`ATTACH '${join(folder.path, 'other.db')}' AS "o""ther"`);
    expect(() => run('CREATE TABLE "o""ther".t (a)'))
      .to.throw(ServiceError, 'a service is one file')
      .with.property('kind', 'invalid');
    expect(() => run('INSERT INTO "o""ther".t VALUES (1)')).to.throw('no such table');
    run('CREATE TEMP TABLE mine (a)');
    run('INSERT INTO mine VALUES (1)');
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
