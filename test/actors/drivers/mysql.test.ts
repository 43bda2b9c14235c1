import { expect } from 'chai';
import { createConnection } from 'mysql2/promise';

import { mysqlDriver } from '../../../src/actors/drivers/mysql/driver.js';
import { failsWith } from '../../support/actors.js';
import { type MariadbBackend, startMariadbBackend } from '../../support/backends/mariadb.js';
import { type CallableTransaction, pendingCall } from '../../support/callable-connection.js';
import { eventually } from '../../support/eventually.js';
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
import { driverSuite } from '../driver-suite.js';
import { poolSuite, SELECT_ONE, sqlSuite } from '../sql-suite.js';

driverSuite(mysqlDriver, {
  start: startMariadbBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: SELECT_ONE,
});

describe('driver mysql', () => {
  let backend: MariadbBackend;
  let sql: SqlConnection;

  before(async () => {
    backend = await startMariadbBackend();
    sql = await connectSql(mysqlDriver, { ...backend.config, pool_size: 2 });
  });
  after(async () => {
    await sql?.connection.close();
    await backend?.remove();
  });

  sqlSuite({
    driver: mysqlDriver,
    config: () => backend.config,
    single: (config) => ({ ...config, pool_size: 1 }),
    version: /^MariaDB \d+\.\d+\.\d+$/,
    echo: { text: 'SELECT ? AS v', blob: 'SELECT ? AS v' },
    refused: {
      transactions: [
        'BEGIN',
        '/* x */ START /**/ TRANSACTION',
        '# x\ncommit',
        'ROLLBACK',
        'SAVEPOINT a',
        'XA START "x"',
      ],
      others: [
        ...['SET autocommit = 0', 'USE mysql', 'LOCK TABLES suite_moves READ', 'HANDLER suite_moves OPEN'],
        ...["LOAD DATA INFILE 'x' INTO TABLE suite_moves", 'FLUSH TABLES WITH READ LOCK'],
        ...['/*!999999 SELECT */ SET autocommit = 0', '/*! START */ TRANSACTION', 'SELECT 1 /*M!1 + 1 */'],
        ...['IF 1 THEN START TRANSACTION; END IF', '--\x7fSELECT\nSET autocommit = 0'],
      ],
    },
    clean: [
      ...[
        'SELECT 1',
        'SELECT * FROM nowhere',
        'SELEC',
        'INSERT INTO nowhere VALUES (1)',
        'TRUNCATE suite_moves',
      ],
      ...['CREATE TABLE suite_made (a INT)', 'DROP TABLE suite_made', 'DO 1', 'SELECT 1 FOR UPDATE', ''],
      ...['a: LOOP START TRANSACTION; LEAVE a; END LOOP', 'EXECUTE IMMEDIATE "START TRANSACTION"'],
    ],
    tooLarge: [
      ['many rows', "SELECT REPEAT('x', 1000) FROM seq_1_to_10000000"],
      ['one value', "SELECT REPEAT('x', 200000000)"],
    ],
  });

  poolSuite({
    driver: mysqlDriver,
    config: () => ({ ...backend.config, pool_size: 2 }),
    id: 'SELECT CONNECTION_ID()',
    end: (id) => `KILL ${id}`,
    sleep: (seconds) => `SELECT SLEEP(${seconds})`,
    running: 'SELECT id FROM information_schema.processlist WHERE info = ?',
    holdCommit: async (write) => {
      await write();
      const { host, port, username, password, database } = backend.config;
      const holder = await createConnection({
        host,
        port,
        user: username,
        password: password ?? '',
        database,
      });
      await holder.query('FLUSH TABLES WITH READ LOCK');
      return () => holder.end();
    },
  });

  const value = (statement: string, ...params: Param[]) => valueText(sql.connection, statement, ...params);

  describe('values', () => {
    /** Column type, stored value, and its JSON. */
    const VALUES: readonly (readonly [type: string, literal: string, json: string])[] = [
      ['INT', 'NULL', 'null'],
      ['BOOLEAN', 'TRUE', '1'],
      ['TINYINT', '-128', '-128'],
      ['TINYINT UNSIGNED', '255', '255'],
      ['SMALLINT', '-32768', '-32768'],
      ['MEDIUMINT', '-8388608', '-8388608'],
      ['MEDIUMINT UNSIGNED', '16777215', '16777215'],
      ['INT UNSIGNED', '4294967295', '4294967295'],
      ['BIGINT', '-9223372036854775808', '-9223372036854775808'],
      ['BIGINT', '9223372036854775807', '9223372036854775807'],
      ['BIGINT UNSIGNED', '18446744073709551615', '18446744073709551615'],
      ['FLOAT', '0.1', '0.1'],
      ['FLOAT', '16777217', '16777216'],
      ['DOUBLE', '0.30000000000000004', '0.30000000000000004'],
      ['DOUBLE', '1e300', '1e+300'],
      [
        'DECIMAL(40,10)',
        '123456789012345678901234567890.0123456789',
        '"123456789012345678901234567890.0123456789"',
      ],
      ['DATE', "'2026-01-31'", '"2026-01-31"'],
      ['DATETIME', "'2026-01-31 23:59:59'", '"2026-01-31T23:59:59"'],
      ['DATETIME', "'2026-01-31'", '"2026-01-31T00:00:00"'],
      ['DATETIME(6)', "'2026-01-31 23:59:59.123456'", '"2026-01-31T23:59:59.123456"'],
      ['DATETIME(3)', "'2026-01-31 23:59:59.120'", '"2026-01-31T23:59:59.120"'],
      ['TIMESTAMP(6)', "'2026-01-31 23:59:59.000001'", '"2026-01-31T23:59:59.000001"'],
      ['TIME(6)', "'-838:59:58.999999'", '"-838:59:58.999999"'],
      ['YEAR', '2026', '2026'],
      ['BIT(1)', "b'1'", '1'],
      ['BIT(64)', "x'FFFFFFFFFFFFFFFF'", '18446744073709551615'],
      ['CHAR(3)', "'x'", '"x"'],
      [
        'VARCHAR(100)',
        String.raw`'quote " backslash \\ line\n ü 😀'`,
        String.raw`"quote \" backslash \\ line\n ü 😀"`,
      ],
      ['TEXT', "'text'", '"text"'],
      ['BLOB', "x'00FF10'", '"AP8Q"'],
      ['VARBINARY(10)', "''", '""'],
      ["ENUM('a','b')", "'b'", '"b"'],
      ["SET('a','b')", "'a,b'", '"a,b"'],
      ['JSON', `'{"a": 1152921504606846976}'`, '{"a": 1152921504606846976}'],
      ['UUID', "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", '"6ba7b810-9dad-11d1-80b4-00c04fd430c8"'],
    ];
    for (const [type, literal, json] of VALUES) {
      it(`the driver of mysql returns ${type} ${literal} as ${json}`, async () => {
        await execute(sql.connection, `CREATE OR REPLACE TABLE typed (v ${type})`);
        await execute(sql.connection, `INSERT INTO typed VALUES (${literal})`);
        expect(await value('SELECT v FROM typed')).to.equal(json);
      });
    }
  });

  describe('parameters', () => {
    it('the driver of mysql sends parameters of every kind', async () => {
      expect(await value('SELECT ? AS v', true)).to.equal('1');
      expect(await value('SELECT ? AS v', false)).to.equal('0');
      expect(await value('SELECT ? AS v', null)).to.equal('null');
      expect(await value('SELECT ? AS v', -5)).to.equal('-5');
      expect(await value('SELECT ? AS v', 0.1)).to.equal('0.1');
      expect(await value('SELECT ? AS v', "it's \\")).to.equal(String.raw`"it's \\"`);
      expect(await value('SELECT ? AS v', { int: '-9223372036854775808' })).to.equal('-9223372036854775808');
      expect(await value('SELECT ? AS v', { int: '18446744073709551615' })).to.equal('18446744073709551615');
      expect(await value('SELECT ? AS v', { blob: 'AP8=' })).to.equal('"AP8="');
      expect(await value("SELECT JSON_EXTRACT(?, '$.n') AS v", { json: '{"n":9007199254740993}' })).to.equal(
        '9007199254740993',
      );
      const message = await failsWith(
        'invalid',
        sql.connection.call(sqlCall('query', 'SELECT ?', [{ int: '18446744073709551616' }])),
      );
      expect(message).to.include('does not fit');
    });

    it('the driver of mysql sends parameters of LIMIT and OFFSET', async () => {
      const { rows } = await query(sql.connection, 'SELECT seq FROM seq_1_to_10 LIMIT ? OFFSET ?', 2, 3);
      expect(rows).to.deep.equal([[4], [5]]);
    });

    it('the driver of mysql places a parameter among strings, names and comments with question marks', async () => {
      expect(await value("SELECT CONCAT('?\\'?', \"?\", ?) /* ? */ AS `?` -- ?\n", 'x')).to.equal('"?\'??x"');
    });
  });

  describe('statements', () => {
    before(() =>
      execute(sql.connection, 'CREATE TABLE things (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20))'),
    );
    beforeEach(() => execute(sql.connection, 'TRUNCATE things'));

    it('a statement of MySQL returns the number of changed rows and the inserted id', async () => {
      expect(await execute(sql.connection, "INSERT INTO things (name) VALUES ('a')")).to.deep.equal({
        ...{ rows_affected: 1, last_insert_id: 1n },
      });
      const insert = "INSERT INTO things VALUES (9007199254740993, 'b')";
      await execute(sql.connection, insert);
      const text = await queryText(sql.connection, "INSERT INTO things (name) VALUES ('c')");
      expect(text).to.equal('{"columns":[],"rows":[],"rows_affected":1,"last_insert_id":9007199254740994}');
      expect(await execute(sql.connection, "UPDATE things SET name = 'a'")).to.deep.equal({
        ...{ rows_affected: 3, last_insert_id: null },
      });
      expect(await query(sql.connection, 'SELECT name FROM things WHERE id < 0')).to.deep.equal({
        ...{ columns: ['name'], rows: [], rows_affected: 0, last_insert_id: null },
      });
    });

    it('a statement of MySQL fails with the message of the database', async () => {
      const failing = (text: string) => failsWith('backend', sql.connection.call(sqlCall('query', text)));
      await execute(sql.connection, "INSERT INTO things VALUES (1, 'a')");
      expect(await failing("INSERT INTO things VALUES (1, 'b')")).to.equal(
        "Duplicate entry '1' for key 'PRIMARY' (1062, 23000)",
      );
      expect(await failing('SELEC')).to.match(/You have an error in your SQL syntax.*\(1064, 42000\)$/);
      expect(await failing('SELECT 1; SELECT 2')).to.match(/1064/);
      expect(await failing('SELECT * FROM nowhere')).to.match(/1146/);
      expect(await value('SELECT COUNT(*) FROM things')).to.equal('1');
    });

    it('a call of a procedure of MySQL returns the first of several results', async () => {
      await execute(sql.connection, 'CREATE PROCEDURE both_of() BEGIN SELECT 1 AS a; SELECT 2 AS b; END');
      expect(await query(sql.connection, 'CALL both_of()'))
        .to.include({ rows_affected: 0 })
        .and.to.deep.include({
          ...{ columns: ['a'], rows: [[1]] },
        });
    });

    it('the driver of mysql keeps prepared statements up to a limit', async () => {
      for (let i = 0; i < 450; i++) expect(await value(`SELECT ${i} AS v`)).to.equal(String(i));
      const { rows } = await query(sql.connection, "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
      expect(Number(rows[0]?.[1])).to.be.within(1, 402);
    });
  });

  describe('sessions', () => {
    let single: SqlConnection;
    before(async () => {
      for (const [name, body] of [
        ['left_open', 'START TRANSACTION; INSERT INTO kept VALUES (1)'],
        ['left_off', 'SET autocommit = 0; INSERT INTO kept VALUES (2)'],
        ['left_failing', 'START TRANSACTION; INSERT INTO kept VALUES (3); SELECT * FROM nowhere'],
        ['left_with_rows', 'START TRANSACTION; INSERT INTO kept VALUES (4); SELECT 1'],
      ]) {
        await execute(sql.connection, `CREATE PROCEDURE ${name}() BEGIN ${body}; END`);
      }
      await execute(sql.connection, 'CREATE TABLE kept (id INT)');
      single = await connectSql(mysqlDriver, { ...backend.config, pool_size: 1 });
    });
    after(() => single?.connection.close());

    for (const [name, kind] of [
      ['left_open', 'invalid'],
      ['left_off', 'invalid'],
      ['left_with_rows', 'invalid'],
      ['left_failing', 'backend'],
    ] as const) {
      it(`a session of MySQL is unchanged for the next call after the procedure ${name}`, async () => {
        const message = await failsWith(kind, single.connection.call(sqlCall('query', `CALL ${name}()`)));
        if (kind === 'invalid') expect(message).to.include('left a transaction open');
        await execute(single.connection, 'INSERT INTO kept VALUES (10)');
        // Other connections see only committed data.
        await eventually(async () => expect(await value('SELECT SUM(id) FROM kept')).to.equal('"10"'));
        expect(single.lost).to.deep.equal([]);
        await execute(sql.connection, 'DELETE FROM kept');
      });
    }

    it('sessions of MySQL read strings with the same syntax, whatever the settings of the server are', async () => {
      const modes = await value('SELECT @@global.sql_mode');
      await execute(sql.connection, 'CREATE PROCEDURE set_mode(m TEXT) SET GLOBAL sql_mode = m');
      try {
        for (const mode of ['ANSI', 'ORACLE', 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE', '']) {
          await execute(sql.connection, 'CALL set_mode(?)', mode);
          const { connection } = await connectSql(mysqlDriver, backend.config);
          const statement = 'SELECT CONCAT("a\\"?", ?), @@sql_mode';
          const { rows } = await query(connection, statement, 'b').finally(() => connection.close());
          expect(rows[0]?.[0], mode).to.equal('a"?b');
          expect(String(rows[0]?.[1]).includes('NO_ZERO_DATE')).to.equal(mode.includes('NO_ZERO_DATE'));
        }
      } finally {
        await execute(sql.connection, 'CALL set_mode(?)', JSON.parse(modes) as string);
      }
    });
  });

  describe('transactions that the server ends', () => {
    before(async () => {
      await execute(sql.connection, 'CREATE TABLE fought (id INT PRIMARY KEY, n INT) ENGINE = InnoDB');
      await execute(sql.connection, 'INSERT INTO fought VALUES (1, 0), (2, 0)');
    });
    const update = (on: CallableTransaction, id: number) =>
      on.call(sqlCall('execute', 'UPDATE fought SET n = n + 1 WHERE id = ?', [id]));

    it('a transaction of MySQL is not committed after a deadlock', async () => {
      const [first, second] = [await sql.begin(), await sql.begin()];
      await update(first, 1);
      await update(second, 2);
      const outcomes = await Promise.allSettled([update(first, 2), update(second, 1)]);
      const lost = outcomes.findIndex(({ status }) => status === 'rejected');
      expect(String((outcomes[lost] as PromiseRejectedResult).reason)).to.include('1213');
      const [loser, winner] = lost === 0 ? [first, second] : [second, first];
      expect(await failsWith('backend', update(loser, 1))).to.include('was rolled back');
      const outcome = await loser.commit(pendingCall('commit')).then(() => 'committed', String);
      expect(outcome).to.include('was rolled back');
      await loser.rollback();
      await winner.commit(pendingCall('commit'));
      expect((await query(sql.connection, 'SELECT n FROM fought')).rows).to.deep.equal([[1], [1]]);
    });

    it('a transaction of MySQL continues after an error that does not end it', async () => {
      const transaction = await sql.begin();
      await update(transaction, 1);
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO fought VALUES (1, 1)')));
      await transaction.commit(pendingCall('commit'));
      expect(await value('SELECT n FROM fought WHERE id = 1')).to.equal('2');
    });

    it('reports a transaction of MySQL as ended after a statement with an implicit commit', async () => {
      const transaction = await sql.begin();
      await update(transaction, 2);
      await execute(transaction, 'CREATE TABLE on_the_way (id INT)');
      expect(await failsWith('backend', update(transaction, 2))).to.include('commits by itself');
      const outcome = await transaction.commit(pendingCall('commit')).then(() => 'committed', String);
      expect(outcome).to.include('commits by itself');
      expect(await value('SELECT n FROM fought WHERE id = 2')).to.equal('2');
    });
  });

  const sleepers = (statement: string, on = sql) =>
    valueText(on.connection, 'SELECT COUNT(*) FROM information_schema.processlist WHERE info = ?', statement);

  describe('lost connections', () => {
    it('reports a lost connection to MySQL when no new one can be opened', async () => {
      await execute(sql.connection, "CREATE USER passing IDENTIFIED BY 'p'");
      await execute(sql.connection, 'GRANT ALL ON gate.* TO passing');
      const other = await connectSql(mysqlDriver, {
        ...{ ...backend.config, username: 'passing', password: 'p', pool_size: 1 },
      });
      try {
        const id = await valueText(other.connection, 'SELECT CONNECTION_ID()');
        const sleeping = failsWith(
          'unavailable',
          other.connection.call(sqlCall('query', 'SELECT SLEEP(64)')),
        );
        await eventually(async () => expect(await sleepers('SELECT SLEEP(64)')).to.equal('1'));
        await execute(sql.connection, 'ALTER USER passing ACCOUNT LOCK');
        await execute(sql.connection, `KILL ${id}`);
        expect(await sleeping).to.include('refused');
        await eventually(() => expect(other.lost).to.have.lengthOf.at.least(1));
        expect(other.lost[0]).to.have.property('kind', 'unavailable');
      } finally {
        await other.connection.close();
      }
    });

    it('fails only the call whose statement exceeds the limit of the server of MySQL', async () => {
      const limit = await value('SELECT @@global.max_allowed_packet');
      await execute(sql.connection, 'CREATE PROCEDURE take(n BIGINT) SET GLOBAL max_allowed_packet = n');
      await execute(sql.connection, 'CALL take(1048576)');
      const other = await connectSql(mysqlDriver, { ...backend.config, pool_size: 2 });
      try {
        const slow = valueText(other.connection, 'SELECT SLEEP(0.5)');
        const large = sqlCall('query', 'SELECT LENGTH(?)', ['x'.repeat(20 * 1024 * 1024)]);
        await failsWith('backend', other.connection.call(large));
        expect(await slow).to.equal('0');
        expect(await valueText(other.connection, 'SELECT 1 AS v')).to.equal('1');
        expect(other.lost).to.deep.equal([]);
      } finally {
        await execute(sql.connection, 'CALL take(?)', Number(limit));
        await other.connection.close();
      }
    });
  });
});
