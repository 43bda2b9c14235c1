import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import { failsWith } from '../../support/actors.js';
import { pendingCall } from '../../support/callable-connection.js';
import { eventually } from '../../support/eventually.js';
import { nativeService, sqliteService } from '../../support/native-service.js';
import {
  connectSql,
  execute,
  type Param,
  query,
  queryText,
  type SqlConnection,
  sqlCall,
  valueText,
} from '../../support/sql-calls.js';
import { type TempDir, tempDir } from '../../support/temp.js';
import { driverSuite } from '../driver-suite.js';
import { SELECT_ONE, sqlSuite } from '../sql-suite.js';

/** Never ends, and returns no rows. */
const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';

driverSuite(sqliteService, {
  start: async () => {
    const folder = await tempDir('sqlite');
    return {
      config: { path: join(folder.path, 'a file.db'), create_if_missing: true },
      start: async () => undefined,
      stop: async () => undefined,
      remove: () => folder.remove(),
    };
  },
  wrongPassword: 'a file has none',
  at: 'a file is not reached over the network',
  call: SELECT_ONE,
  inProcesses: sqliteService,
});

describe('driver sqlite', () => {
  let folder: TempDir;
  let config: ServiceConfig<'sqlite'>;
  let sql: SqlConnection;

  before(async () => {
    folder = await tempDir('sqlite');
    config = { path: join(folder.path, 'main.db'), create_if_missing: true };
    sql = await connectSql(sqliteService, config);
  });
  after(async () => {
    await sql?.connection.close();
    await folder?.remove();
  });

  sqlSuite({
    driver: sqliteService,
    config: () => config,
    single: (same) => same,
    version: /^SQLite 3\.\d+\.\d+$/,
    echo: { text: 'SELECT ? AS v', blob: 'SELECT ? AS v' },
    refused: {
      transactions: [
        ...['BEGIN', 'COMMIT', 'END', 'ROLLBACK', 'SAVEPOINT a', '/* x */ begin immediate'],
        '\ufeffBEGIN EXCLUSIVE',
      ],
      others: [
        ...["ATTACH 'x.db' AS other", "\ufeffATTACH 'x.db' AS other", 'DETACH main', "VACUUM INTO 'x.db'"],
        ...["VACUUM main INTO 'x.db'", 'PRAGMA journal_mode = DELETE', 'PRAGMA main.journal_mode(DELETE)'],
        ...['PRAGMA foreign_keys = OFF', 'PRAGMA "foreign_keys" = optimize', 'PRAGMA writable_schema = 1'],
        ...['PRAGMA journal_mode = user_version', 'EXPLAIN PRAGMA foreign_keys = OFF'],
        ...['/**/ PRAGMA foreign_keys = OFF', '\ufeffPRAGMA foreign_keys = OFF'],
      ],
    },
    clean: [
      ...['SELECT 1', 'SELECT * FROM nowhere', 'SELEC', 'INSERT INTO nowhere VALUES (1)', 'VACUUM', ''],
      ...[
        'CREATE TABLE suite_made (a UNIQUE ON CONFLICT ROLLBACK)',
        'INSERT INTO suite_made VALUES (1), (1)',
      ],
      ...['DROP TABLE suite_made', '\ufeffBEGIN', '\ufeffSAVEPOINT a', 'EXPLAIN BEGIN'],
    ],
    tooLarge: [
      [
        'many rows',
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT printf('%1000d', x) FROM c",
      ],
      ['one value', 'SELECT hex(zeroblob(40000000))'],
    ],
  });

  const value = (statement: string, ...params: Param[]) => valueText(sql.connection, statement, ...params);

  it('SQLite uses a write-ahead log and checks foreign keys', async () => {
    expect(await value('SELECT journal_mode FROM pragma_journal_mode')).to.equal('"wal"');
    expect(await value('SELECT foreign_keys FROM pragma_foreign_keys')).to.equal('1');
  });

  describe('values', () => {
    const VALUES: readonly (readonly [expression: string, json: string])[] = [
      ['NULL', 'null'],
      ['TRUE', '1'],
      ['9223372036854775807', '9223372036854775807'],
      ['-9223372036854775808', '-9223372036854775808'],
      ['9007199254740993', '9007199254740993'],
      ['0.30000000000000004', '0.30000000000000004'],
      ['1e300', '1e+300'],
      ['9e999', '"Infinity"'],
      ['-9e999', '"-Infinity"'],
      [`'quote " backslash \\ line' || char(10) || ' ü 😀'`, String.raw`"quote \" backslash \\ line\n ü 😀"`],
      ["x'00FF10'", '"AP8Q"'],
      ["x''", '""'],
      ["datetime('2026-01-31 23:59:59')", '"2026-01-31 23:59:59"'],
    ];
    for (const [expression, json] of VALUES) {
      it(`SQLite returns ${expression} as ${json}`, async () => {
        expect(await value(`SELECT ${expression} AS v`)).to.equal(json);
      });
    }
  });

  describe('parameters', () => {
    it('sends parameters of every kind to SQLite', async () => {
      expect(await value('SELECT ? AS v', true)).to.equal('1');
      expect(await value('SELECT ? AS v', false)).to.equal('0');
      expect(await value('SELECT ? AS v', null)).to.equal('null');
      expect(await value('SELECT typeof(?) AS v', 5)).to.equal('"integer"');
      expect(await value('SELECT ? AS v', 0.1)).to.equal('0.1');
      expect(await value('SELECT ? AS v', "it's \\")).to.equal(String.raw`"it's \\"`);
      expect(await value('SELECT ? AS v', { int: '-9223372036854775808' })).to.equal('-9223372036854775808');
      expect(await value("SELECT json_extract(?, '$.n') AS v", { json: '{"n":9007199254740993}' })).to.equal(
        '9007199254740993',
      );
      const tooLarge = sql.connection.call(sqlCall('query', 'SELECT ?', [{ int: '9223372036854775808' }]));
      expect(await failsWith('invalid', tooLarge)).to.include('does not fit');
    });

    it('sends parameters to SQLite for ?, ?1 and names', async () => {
      expect(await value('SELECT ? - ? AS v', 5, 3)).to.equal('2');
      expect(await value('SELECT ?2 - ?1 - ?1 AS v', 3, 10)).to.equal('4');
      expect(await value('SELECT :a || @b || $c || :a AS v', 'x', 'y', 'z')).to.equal('"xyzx"');
      expect(
        await value('SELECT \'?\' || "?" || [?] || ? AS v FROM (SELECT \'a\' AS "?") -- ?', 'x'),
      ).to.equal('"?aax"');
    });
  });

  describe('statements', () => {
    before(() => execute(sql.connection, 'CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE)'));
    beforeEach(() => execute(sql.connection, 'DELETE FROM things'));

    it('a statement of SQLite returns the number of changed rows and the inserted id', async () => {
      expect(
        await execute(sql.connection, "INSERT INTO things VALUES (9007199254740993, 'a')"),
      ).to.deep.equal({
        // The client of the tests reads heads as JavaScript does; the next answer shows that it is exact.
        ...{ rows_affected: 1, last_insert_id: Number(9007199254740993n) },
      });
      const text = await queryText(sql.connection, "INSERT INTO things (name) VALUES ('b') RETURNING name");
      expect(text).to.equal(
        '{"columns":["name"],"rows":[["b"]],"rows_affected":1,"last_insert_id":9007199254740994}',
      );
      expect(
        await execute(sql.connection, "UPDATE things SET name = name || 'x' RETURNING id"),
      ).to.deep.equal({
        ...{ rows_affected: 2, last_insert_id: null },
      });
      expect(await query(sql.connection, 'SELECT name FROM things WHERE id < 0')).to.deep.equal({
        ...{ columns: ['name'], rows: [], rows_affected: 0, last_insert_id: null },
      });
      expect(await query(sql.connection, 'DELETE FROM things')).to.deep.equal({
        ...{ columns: [], rows: [], rows_affected: 2, last_insert_id: null },
      });
    });

    it('a statement of SQLite fails with the message of the database', async () => {
      const failing = (text: string) => failsWith('backend', sql.connection.call(sqlCall('query', text)));
      await execute(sql.connection, "INSERT INTO things VALUES (1, 'a')");
      expect(await failing("INSERT INTO things VALUES (1, 'b')")).to.equal(
        'UNIQUE constraint failed: things.id (SQLITE_CONSTRAINT)',
      );
      expect(await failing('SELEC')).to.equal('near "SELEC": syntax error (SQLITE_ERROR)');
      expect(await failing('SELECT * FROM nowhere')).to.include('no such table: nowhere');
      await failsWith('invalid', sql.connection.call(sqlCall('query', 'SELECT 1; SELECT 2')));
      await failsWith('invalid', sql.connection.call(sqlCall('query', '')));
      expect(await value('SELECT count(*) FROM things')).to.equal('1');
    });

    it('refuses a parameter with U+0000, at which SQLite would cut it', async () => {
      const cut = sql.connection.call(sqlCall('query', 'SELECT ?', ['a\u0000b']));
      expect(await failsWith('invalid', cut)).to.include('U+0000');
    });

    it('refuses a statement of SQLite that would access another file', async () => {
      const other = join(folder.path, 'other.db');
      await failsWith('invalid', sql.connection.call(sqlCall('execute', `ATTACH '${other}' AS other`)));
      await failsWith('invalid', sql.connection.call(sqlCall('execute', `VACUUM INTO '${other}'`)));
      await failsWith('backend', sql.connection.call(sqlCall('query', "SELECT load_extension('x')")));
      expect(existsSync(other)).to.equal(false);
      expect(await value('SELECT foreign_keys FROM pragma_foreign_keys')).to.equal('1');
      expect((await query(sql.connection, 'PRAGMA table_info(things)')).rows).to.have.lengthOf(2);
    });

    it('a statement of SQLite sees a changed schema', async () => {
      const other = await connectSql(sqliteService, config);
      try {
        await execute(sql.connection, 'CREATE TABLE shapes (a)');
        await execute(sql.connection, 'INSERT INTO shapes VALUES (1)');
        for (const [name, by] of [
          ['b', sql],
          ['c', other],
        ] as const) {
          await query(sql.connection, 'SELECT * FROM shapes');
          const { columns } = await query(sql.connection, 'SELECT * FROM shapes');
          await execute(by.connection, `ALTER TABLE shapes RENAME COLUMN ${columns[0]} TO ${name}`);
          expect((await query(sql.connection, 'SELECT * FROM shapes')).columns).to.deep.equal([name]);
        }
        await execute(other.connection, 'ALTER TABLE shapes ADD COLUMN d');
        expect((await query(sql.connection, 'SELECT * FROM shapes')).rows).to.deep.equal([[1, null]]);
      } finally {
        await other.connection.close();
      }
    });
  });

  it('SQLite runs one statement at a time, and a trigger counts as one', async () => {
    const others = [
      'SELECT 1; SELECT 2',
      'SELECT 1;;;SELECT 2;',
      'SELECT 1; x',
      '',
      ';',
      ' -- nothing',
      '/* */;',
    ];
    for (const text of others) {
      const message = await failsWith('invalid', sql.connection.call(sqlCall('query', text)));
      expect(message, JSON.stringify(text)).to.include('statement');
    }
    expect(await value("SELECT ';' ; -- SELECT 2")).to.equal('";"');
    await execute(sql.connection, 'CREATE TABLE doubled (a)');
    await execute(
      sql.connection,
      'CREATE TRIGGER twice AFTER INSERT ON doubled BEGIN UPDATE doubled SET a = 2 * new.a; SELECT 1; END;',
    );
    await execute(sql.connection, 'INSERT INTO doubled VALUES (4)');
    expect(await value('SELECT a FROM doubled')).to.equal('8');
  });

  it('SQLite counts the rows that a statement with RETURNING has changed', async () => {
    await execute(sql.connection, 'CREATE TABLE counted (a)');
    const effects = async (text: string) => {
      const { rows_affected, last_insert_id } = await query(sql.connection, text);
      return [rows_affected, last_insert_id];
    };
    expect(await effects('INSERT INTO counted VALUES (1), (2) RETURNING a')).to.deep.equal([2, 2]);
    expect(await effects('WITH x AS (SELECT 1) SELECT * FROM x')).to.deep.equal([0, null]);
    expect(await effects('UPDATE counted SET a = 3 WHERE a = 9 RETURNING a')).to.deep.equal([0, null]);
    expect(await effects('WITH x AS (SELECT 1) UPDATE counted SET a = 3 RETURNING a')).to.deep.equal([
      2,
      null,
    ]);
  });

  it('refuses ATTACH, PRAGMA and the like in SQLite behind any byte order mark', async () => {
    const other = join(folder.path, 'not-attached.db');
    for (const mark of ['', '\ufeff', ' \ufeff\ufeff ', '/**/\ufeff', ';\ufeff']) {
      for (const text of [
        ...[
          `ATTACH '${other}' AS o`,
          'DETACH main',
          `VACUUM INTO '${other}'`,
          `VACUUM \ufeffINTO '${other}'`,
        ],
        ...['BEGIN', 'PRAGMA foreign_keys = OFF', 'PRAGMA \ufeffforeign_keys = OFF'],
        'EXPLAIN \ufeffPRAGMA foreign_keys = OFF',
        'CREATE TEMP TABLE settings (a)',
        'CREATE TRIGGER temp.t AFTER INSERT ON doubled BEGIN SELECT 1; END',
      ]) {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('query', mark + text)));
        expect(message, JSON.stringify(mark + text)).to.include('is not possible here');
      }
      expect(await value(`${mark}SELECT \ufeff1 AS v`)).to.equal('1');
    }
    expect(existsSync(other)).to.equal(false);
    expect(await value('SELECT foreign_keys FROM pragma_foreign_keys')).to.equal('1');
    await execute(sql.connection, 'VACUUM');
  });

  it('SQLite has the functions and modules that handlers rely on', async () => {
    for (const module of ['fts3', 'fts4', 'fts5', 'rtree', 'geopoly'])
      await execute(sql.connection, `CREATE VIRTUAL TABLE a_${module} USING ${module}(a, b, c)`);
    const functions = [
      'sin',
      'soundex',
      'json_extract',
      'jsonb',
      'median',
      'percentile',
      'unixepoch',
      'unistr',
      'iif',
    ];
    const list = functions.map((name) => `'${name}'`).join(', ');
    const known = await value(
      `SELECT count(DISTINCT name) FROM pragma_function_list WHERE name IN (${list})`,
    );
    expect(known).to.equal(String(functions.length));
    await failsWith('backend', sql.connection.call(sqlCall('query', 'SELECT "a text in double quotes"')));
  });

  describe('statements that are sent at once', () => {
    before(() => execute(sql.connection, 'CREATE TABLE steps (id INTEGER)'));
    beforeEach(() => execute(sql.connection, 'DELETE FROM steps'));
    const count = () => value('SELECT count(*) FROM steps');

    it('statements that are sent to SQLite at once run in their order, and a failure harms no other', async () => {
      const seen: unknown[] = await Promise.all([
        ...[count(), count(), execute(sql.connection, 'INSERT INTO steps VALUES (1)'), count()],
        failsWith('backend', sql.connection.call(sqlCall('query', 'SELECT abs(-9223372036854775808)'))),
        ...[
          count(),
          query(sql.connection, 'WITH a AS (SELECT 1) INSERT INTO steps SELECT * FROM a'),
          count(),
        ],
        failsWith('invalid', sql.connection.call(sqlCall('query', 'COMMIT'))),
        count(),
      ]);
      expect(seen.filter((each) => /^\d$/.test(String(each)))).to.deep.equal(['0', '0', '1', '1', '2', '2']);
    });

    it('reads of SQLite at once leave no transaction open, so that another program can write', async () => {
      const other = new DatabaseSync(config.path);
      try {
        await Promise.all([count(), count(), count()]);
        other.exec('BEGIN IMMEDIATE; INSERT INTO steps VALUES (1); COMMIT');
        expect(await Promise.all([count(), count()])).to.deep.equal(['1', '1']);
        const transaction = await sql.begin();
        await transaction.rollback();
        other.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } finally {
        other.close();
      }
    });
  });

  describe('transactions', () => {
    before(() => execute(sql.connection, 'CREATE TABLE moves (id INTEGER)'));
    beforeEach(() => execute(sql.connection, 'DELETE FROM moves'));
    const count = () => value('SELECT count(*) FROM moves');

    it('during a transaction of SQLite, others read the state before it, and write after it', async () => {
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO moves VALUES (1)');
      let begun = false;
      let written = false;
      const write = execute(sql.connection, 'INSERT INTO moves VALUES (2)').then(() => {
        written = true;
      });
      const begin = sql.begin().then((next) => {
        begun = true;
        return next;
      });
      expect(await count()).to.equal('0');
      expect([written, begun]).to.deep.equal([false, false]);
      await transaction.commit(pendingCall('commit'));
      await write;
      const next = await begin;
      const late = execute(sql.connection, 'INSERT INTO moves VALUES (3)');
      expect(await valueText(next, 'SELECT count(*) FROM moves')).to.equal('2');
      await next.rollback();
      await late;
      expect(await count()).to.equal('3');
    });

    it('a transaction of SQLite does not delay a call that is aborted while it waits', async () => {
      const transaction = await sql.begin();
      const abort = new AbortController();
      const waiting = failsWith(
        'deadline',
        sql.connection.call(sqlCall('execute', 'INSERT INTO moves VALUES (1)', [], abort.signal)),
      );
      abort.abort();
      await waiting;
      await transaction.rollback();
      expect(await count()).to.equal('0');
      expect(sql.lost).to.deep.equal([]);
    });

    it('a transaction is not committed after SQLite has rolled it back', async () => {
      await execute(sql.connection, 'CREATE TABLE strict_moves (id INTEGER UNIQUE ON CONFLICT ROLLBACK)');
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO strict_moves VALUES (1)');
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO strict_moves VALUES (1)')));
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO strict_moves VALUES (2)')));
      const outcome = await transaction.commit(pendingCall('commit')).then(() => 'committed', String);
      expect(outcome).to.include('rolled back');
      expect(await value('SELECT count(*) FROM strict_moves')).to.equal('0');
      await execute(sql.connection, 'INSERT INTO moves VALUES (1)');
    });
  });

  describe('calls that are aborted or too large', () => {
    it('a statement of SQLite that does not end is aborted, and no other', async () => {
      const abort = new AbortController();
      const endless = failsWith('deadline', sql.connection.call(sqlCall('query', ENDLESS, [], abort.signal)));
      const behind = value('SELECT 1 AS v');
      abort.abort();
      expect(await endless).to.include('did not answer within');
      expect(await behind).to.equal('1');
      expect(sql.lost).to.deep.equal([]);
    });

    it('a statement of SQLite that does not end is aborted in a transaction, which can be rolled back', async () => {
      await execute(sql.connection, 'CREATE TABLE aborted (id INTEGER)');
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO aborted VALUES (1)');
      const abort = new AbortController();
      const insert = sqlCall('execute', `INSERT INTO aborted ${ENDLESS}`, [], abort.signal);
      const endless = failsWith('deadline', transaction.call(insert));
      abort.abort();
      await endless;
      // An aborted write has rolled it back.
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO aborted VALUES (2)')));
      await transaction.rollback();
      expect(await value('SELECT count(*) FROM aborted')).to.equal('0');
      await execute(sql.connection, 'INSERT INTO aborted VALUES (3)');
      expect(sql.lost).to.deep.equal([]);
    });

    it('SQLite does not run a queued statement that was aborted', async () => {
      await execute(sql.connection, 'CREATE TABLE queued (id INTEGER)');
      const abort = new AbortController();
      const endless = failsWith('deadline', sql.connection.call(sqlCall('query', ENDLESS, [], abort.signal)));
      const insert = sqlCall('execute', 'INSERT INTO queued VALUES (1)', [], abort.signal);
      const behind = failsWith('deadline', sql.connection.call(insert));
      abort.abort();
      await Promise.all([endless, behind]);
      expect(await value('SELECT count(*) FROM queued')).to.equal('0');
      expect(sql.lost).to.deep.equal([]);
    });

    it('a transaction of SQLite that waits for the lock of another process is aborted, and no other', async () => {
      const holder = new DatabaseSync(config.path);
      try {
        holder.exec('BEGIN IMMEDIATE');
        const abort = new AbortController();
        const outcome = sql.connection
          .begin(sqlCall('begin', '', [], abort.signal))
          .then(() => 'begun', String);
        abort.abort();
        expect(await outcome).to.include('did not answer within');
        expect(await value('SELECT 1 AS v')).to.equal('1');
      } finally {
        holder.close();
      }
      const transaction = await sql.begin();
      await transaction.rollback();
      expect(sql.lost).to.deep.equal([]);
    });

    it('a function of SQLite that does not end is aborted by the end of its process', async () => {
      const other = await connectSql(nativeService('sqlite', { mayEnd: true }), config);
      const abort = new AbortController();
      const search = "SELECT instr(zeroblob(60000000), zeroblob(30000000) || x'01')";
      const outcome = other.connection
        .call(sqlCall('query', search, [], abort.signal))
        .then(() => 'answered', String);
      abort.abort();
      expect(await outcome).to.include('did not answer within');
      await eventually(() => expect(String(other.lost)).to.include('a statement ran for too long'));
      await other.connection.close();
    });

    it('closes a connection to SQLite while calls hang', async () => {
      const other = await connectSql(sqliteService, config);
      const endless = failsWith('unavailable', other.connection.call(sqlCall('query', ENDLESS)));
      // Calls are received in their order, and this one is answered at once: it has an integer that is too large.
      const tooLarge = sqlCall('query', 'SELECT ?', [{ int: '9223372036854775808' }]);
      await failsWith('invalid', other.connection.call(tooLarge));
      await other.connection.close();
      await endless;
      expect(other.lost).to.deep.equal([]);
      await failsWith('unavailable', other.connection.call(sqlCall('query', 'SELECT 1')));
    });
  });
});
