import { expect } from 'chai';
import fc from 'fast-check';
import { failsWith } from '../../support/actors.js';
import { type PostgresBackend, startPostgresBackend } from '../../support/backends/postgres-tls.js';
import { pendingCall } from '../../support/callable-connection.js';
import { eventually } from '../../support/eventually.js';
import { postgresService } from '../../support/native-service.js';
import {
  connectSql,
  execute,
  query,
  queryText,
  type SqlConnection,
  sqlCall,
  valueText,
} from '../../support/sql-calls.js';
import { driverSuite } from '../driver-suite.js';
import { poolSuite, SELECT_ONE, sqlSuite } from '../sql-suite.js';

driverSuite(postgresService, {
  start: startPostgresBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: SELECT_ONE,
  inProcesses: postgresService,
});

describe('driver postgres', () => {
  let backend: PostgresBackend;
  let sql: SqlConnection;

  before(async () => {
    backend = await startPostgresBackend();
    sql = await connectSql(postgresService, { ...backend.config, pool_size: 2 });
  });
  after(async () => {
    await sql?.connection.close();
    await backend?.remove();
  });

  sqlSuite({
    driver: postgresService,
    config: () => backend.config,
    single: (config) => ({ ...config, pool_size: 1 }),
    version: /^PostgreSQL \d+\.\d+$/,
    echo: { text: 'SELECT ?::text AS v', blob: 'SELECT ?::bytea AS v' },
    refused: {
      transactions: ['BEGIN', '/* x */ start transaction', '; commit', 'ROLLBACK', 'SAVEPOINT a', 'END'],
      others: [
        ...["SET TimeZone = 'UTC'", '--\rSET search_path = evil', 'DISCARD ALL', 'LISTEN x'],
        ...['COPY suite_moves TO STDOUT', 'PREPARE TRANSACTION x'],
      ],
    },
    clean: [
      ...['SELECT 1', 'SELECT 1 / 0', 'SELEC', 'INSERT INTO nowhere VALUES (1)', 'TRUNCATE suite_moves'],
      ...[
        'LOCK TABLE suite_moves',
        'DO $$ BEGIN COMMIT; END $$',
        'DO $$ BEGIN ROLLBACK; RAISE division_by_zero; END $$',
      ],
      ...['CREATE TABLE suite_made (a int)', 'DROP TABLE suite_made', 'VACUUM suite_moves', ''],
      ...[
        "SELECT set_config('TimeZone', 'Asia/Tokyo', false)",
        'SELECT pg_terminate_backend(pg_backend_pid())',
      ],
    ],
    tooLarge: [
      ['many rows', "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)"],
      ['one value', "SELECT repeat('x', 100000000)"],
      ['bytes that grow', "SELECT repeat('x', 30000000)::bytea, repeat('y', 25000000)::bytea"],
    ],
  });

  poolSuite({
    driver: postgresService,
    config: () => ({ ...backend.config, pool_size: 2 }),
    id: 'SELECT pg_backend_pid()',
    end: (id) => `SELECT pg_terminate_backend(${id})`,
    sleep: (seconds) => `SELECT pg_sleep(${seconds})`,
    running: "SELECT pid FROM pg_stat_activity WHERE query = ? AND state = 'active'",
    holdCommit: async (write) => {
      await execute(
        sql.connection,
        'CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$',
      );
      await execute(
        sql.connection,
        'CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON held DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()',
      );
      await write();
      return async () => {
        await execute(sql.connection, 'DROP FUNCTION hold CASCADE');
      };
    },
  });

  it('resets the settings of a session of PostgreSQL for the next call', async () => {
    const single = await connectSql(postgresService, { ...backend.config, pool_size: 1 });
    const { connection } = single;
    try {
      const noon = "SELECT timestamptz '2026-01-31 12:00:00Z'";
      for (const setting of [
        "'TimeZone', 'Asia/Tokyo'",
        "'DateStyle', 'German'",
        "'standard_conforming_strings', 'off'",
      ]) {
        await query(connection, `SELECT set_config(${setting}, false)`);
        expect(await valueText(connection, noon)).to.equal('"2026-01-31T12:00:00Z"');
        expect(await valueText(connection, 'SHOW standard_conforming_strings')).to.equal('"on"');
      }
      const id = await valueText(connection, 'SELECT pg_backend_pid()');
      const transaction = await single.begin();
      await execute(transaction, "SET LOCAL TimeZone = 'Asia/Tokyo'");
      await transaction.commit(pendingCall('commit'));
      expect(await valueText(connection, 'SELECT pg_backend_pid()')).to.equal(id);
    } finally {
      await connection.close();
    }
  });

  const value = (statement: string, ...params: Parameters<typeof query>[2][]) =>
    valueText(sql.connection, statement, ...params);

  describe('values', () => {
    const VALUES: readonly (readonly [sql: string, json: string])[] = [
      ['NULL', 'null'],
      ['true', 'true'],
      ['false', 'false'],
      ["'-32768'::int2", '-32768'],
      ['2147483647', '2147483647'],
      ['9223372036854775807::int8', '9223372036854775807'],
      ["'-9223372036854775808'::int8", '-9223372036854775808'],
      ['4294967295::oid', '4294967295'],
      ['0.1::float4', '0.1'],
      ['0.30000000000000004::float8', '0.30000000000000004'],
      ['1e300::float8', '1e+300'],
      ["'-0'::float8", '-0'],
      ["'NaN'::float8", '"NaN"'],
      ["'Infinity'::float4", '"Infinity"'],
      ["'-Infinity'::float8", '"-Infinity"'],
      ['123456789012345678901234567890.123456789', '"123456789012345678901234567890.123456789"'],
      ["'NaN'::numeric", '"NaN"'],
      ["date '2026-01-31'", '"2026-01-31"'],
      ["date '0044-03-15 BC'", '"0044-03-15 BC"'],
      ["timestamp '2026-01-31 23:59:59.123456'", '"2026-01-31T23:59:59.123456"'],
      ["timestamp 'infinity'", '"infinity"'],
      ["timestamptz '2026-01-31 23:59:59.123456+02'", '"2026-01-31T21:59:59.123456Z"'],
      ["timestamptz '0044-03-15 12:00:00+00 BC'", '"0044-03-15T12:00:00Z BC"'],
      ["time '23:59:59.000001'", '"23:59:59.000001"'],
      ["interval '1 year 2 days 03:04:05.6'", '"1 year 2 days 03:04:05.6"'],
      ["'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid", '"6ba7b810-9dad-11d1-80b4-00c04fd430c8"'],
      ["''::bytea", '""'],
      [String.raw`'\x00ff10'::bytea`, '"AP8Q"'],
      [`'{"a": 1152921504606846976}'::jsonb`, '{"a": 1152921504606846976}'],
      [`'[1,  null]'::json`, '[1,  null]'],
      [`'"text"'::jsonb`, '"text"'],
      [
        "E'quote \" backslash \\\\ line\\n tab\\t ü 😀'",
        String.raw`"quote \" backslash \\ line\n tab\t ü 😀"`,
      ],
      ["'x'::char(3)", '"x  "'],
      ["inet '10.0.0.1/8'", '"10.0.0.1/8"'],
      ["point '(1,2)'", '"(1,2)"'],
      ["'{1,NULL,9223372036854775807}'::int8[]", '[1,null,9223372036854775807]'],
      ["'{}'::int4[]", '[]'],
      ["'{{1,2},{3,4}}'::int4[]", '[[1,2],[3,4]]'],
      ["'[0:1]={5,6}'::int4[]", '[5,6]'],
      ["ARRAY['a','NULL',NULL,'','q\"b\\c,{}',' ']", String.raw`["a","NULL",null,"","q\"b\\c,{}"," "]`],
      ['ARRAY[true,false,NULL]', '[true,false,null]'],
      ["ARRAY['NaN'::float8, 1.5]", '["NaN",1.5]'],
      ['ARRAY[1.10::numeric]', '["1.10"]'],
      [String.raw`ARRAY['\x00ff'::bytea]`, '["AP8="]'],
      [`ARRAY['{"a":[1]}'::jsonb]`, '[{"a": [1]}]'],
      ["ARRAY[timestamptz '2026-01-31 00:00:00+00']", '["2026-01-31T00:00:00Z"]'],
      ["ARRAY[date '2026-01-31']", '["2026-01-31"]'],
      ["ARRAY[box '(1,1),(0,0)', NULL]", '["(1,1),(0,0)",null]'],
    ];
    for (const [expression, json] of VALUES) {
      it(`PostgreSQL returns ${expression} as ${json}`, async () => {
        expect(await value(`SELECT ${expression} AS v`)).to.equal(json);
      });
    }

    it('PostgreSQL returns arrays of any texts', async () => {
      const element = fc.option(
        fc.oneof(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[{}",\\ NUL]*$/)),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(element), async (texts) => {
          const sent = JSON.stringify(texts.map((text) => text?.replaceAll('\0', '') ?? null));
          const text = 'SELECT ARRAY(SELECT jsonb_array_elements_text(?::jsonb)) AS v';
          expect(JSON.parse(await value(text, { json: sent }))).to.deep.equal(JSON.parse(sent));
        }),
        { numRuns: 100 },
      );
    });

    it('PostgreSQL returns arrays of types that were created after the service connected', async () => {
      await execute(sql.connection, "CREATE TYPE mood AS ENUM ('so, so', 'fine')");
      await execute(sql.connection, 'CREATE DOMAIN small AS int4');
      const text = `SELECT ARRAY['so, so'::mood, NULL] AS moods, 'fine'::mood AS mood, ARRAY[1::small] AS small`;
      const expected = [[['so, so', null], 'fine', [1]]];
      expect((await query(sql.connection, text)).rows).to.deep.equal(expected);
      expect((await query(sql.connection, text)).rows).to.deep.equal(expected);
    });

    it('settings of a database of PostgreSQL do not change the format of values', async () => {
      const { database } = backend.config;
      await execute(sql.connection, `ALTER DATABASE ${database} SET TimeZone = 'Asia/Tokyo'`);
      await execute(sql.connection, `ALTER DATABASE ${database} SET DateStyle = 'German'`);
      const other = await connectSql(postgresService, backend.config);
      try {
        const text = await valueText(other.connection, "SELECT timestamptz '2026-01-31 00:00:00+00'");
        expect(text).to.equal('"2026-01-31T00:00:00Z"');
      } finally {
        await other.connection.close();
      }
    });
  });

  describe('parameters', () => {
    it('sends parameters of every kind to PostgreSQL', async () => {
      expect(await value('SELECT ?::bool', true)).to.equal('true');
      expect(await value('SELECT ?::text', null)).to.equal('null');
      expect(await value('SELECT ?::int4', -5)).to.equal('-5');
      expect(await value('SELECT ?::float8', 0.1)).to.equal('0.1');
      expect(await value('SELECT ?::int8', { int: '9007199254740993' })).to.equal('9007199254740993');
      expect(await value('SELECT ?::text', "it's")).to.equal('"it\'s"');
      expect(await value('SELECT ?::jsonb', { json: '{"n":9007199254740993}' })).to.equal(
        '{"n": 9007199254740993}',
      );
    });

    it('sends parameters to PostgreSQL for ?, or for $1', async () => {
      expect(await value('SELECT ?::int4 - ?::int4 AS "?" -- ?', 5, 3).catch(String)).to.equal('2');
      expect(await value('SELECT $2::int4 - $1::int4 - $1::int4', 3, 10)).to.equal('4');
      expect(await value(`SELECT '{"a":1}'::jsonb ?? ?::text`, 'a')).to.equal('true');
      expect(await value(`SELECT '{"a":1}'::jsonb ? $1::text`, 'a')).to.equal('true');
      expect(await value("SELECT $$ $1 ? $$ || $x$ ? $x$ || '?' || E'\\'?' || ?::text", 'x')).to.equal(
        `" $1 ?  ? ?'?x"`,
      );
    });
  });

  describe('statements', () => {
    before(() => execute(sql.connection, 'CREATE TABLE things (id int PRIMARY KEY, name text)'));
    beforeEach(() => execute(sql.connection, 'TRUNCATE things'));

    it('a statement of PostgreSQL returns the number of changed rows', async () => {
      const insert = "INSERT INTO things VALUES (1, 'a'), (2, 'b')";
      expect(await execute(sql.connection, insert)).to.deep.equal({ rows_affected: 2, last_insert_id: null });
      expect(await query(sql.connection, 'UPDATE things SET name = ? RETURNING id', 'c')).to.deep.equal({
        ...{ columns: ['id'], rows: [[1], [2]], rows_affected: 2, last_insert_id: null },
      });
      expect(await query(sql.connection, 'SELECT * FROM things WHERE false')).to.deep.equal({
        ...{ columns: ['id', 'name'], rows: [], rows_affected: 0, last_insert_id: null },
      });
      expect(await query(sql.connection, 'DELETE FROM things')).to.deep.equal({
        ...{ columns: [], rows: [], rows_affected: 2, last_insert_id: null },
      });
      expect(await query(sql.connection, '')).to.have.property('rows_affected', 0);
    });

    it('a statement of PostgreSQL fails with the message of the database', async () => {
      const failing = (text: string) => failsWith('backend', sql.connection.call(sqlCall('query', text)));
      await execute(sql.connection, "INSERT INTO things VALUES (1, 'a')");
      expect(await failing("INSERT INTO things VALUES (1, 'b')")).to.equal(
        'duplicate key value violates unique constraint "things_pkey" (23505): Key (id)=(1) already exists.',
      );
      expect(await failing('SELECT nam FROM things')).to.match(
        /^column "nam" does not exist \(42703\) Hint: /,
      );
      expect(await failing('SELEC')).to.match(/^syntax error at or near "SELEC" \(42601\)$/);
      expect(await failing('SELECT 1; SELECT 2')).to.match(/cannot insert multiple commands/);
      expect(await value('SELECT count(*) FROM things')).to.equal('1');
    });

    it('a statement of PostgreSQL works again when the type of its result has changed', async () => {
      for (let i = 0; i < 4; i++) await query(sql.connection, 'SELECT * FROM things');
      await execute(sql.connection, 'ALTER TABLE things ADD COLUMN size int');
      for (let i = 0; i < 4; i++) {
        expect((await query(sql.connection, 'SELECT * FROM things')).columns).to.deep.equal([
          'id',
          'name',
          'size',
        ]);
      }
    });

    it('keeps prepared statements of PostgreSQL up to a limit', async () => {
      for (let i = 0; i < 450; i++) expect(await value(`SELECT ${i} AS v`)).to.equal(String(i));
      const prepared = Number(await value('SELECT count(*) FROM pg_prepared_statements'));
      expect(prepared).to.be.within(2, 201);
    });
  });

  describe('transactions', () => {
    before(() => execute(sql.connection, 'CREATE TABLE moves (id int)'));
    beforeEach(() => execute(sql.connection, 'TRUNCATE moves'));
    const count = () => value('SELECT count(*) FROM moves');

    it('a transaction of PostgreSQL may have savepoints and settings of its own', async () => {
      const transaction = await sql.begin();
      await execute(transaction, "SET LOCAL TimeZone = 'Asia/Tokyo'");
      await execute(transaction, 'SAVEPOINT a');
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO nowhere VALUES (1)')));
      await execute(transaction, 'ROLLBACK TO SAVEPOINT a');
      await execute(transaction, 'INSERT INTO moves VALUES (1)');
      await failsWith('invalid', transaction.call(sqlCall('execute', 'COMMIT')));
      await transaction.commit(pendingCall('commit'));
      expect(await count()).to.equal('1');
    });

    it('a transaction of PostgreSQL is not committed after a statement has failed', async () => {
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO moves VALUES (1)');
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO moves VALUES (?)', ['x'])));
      const outcome = await transaction.commit(pendingCall('commit')).then(() => 'committed', String);
      expect(outcome).to.include('rolled back');
      expect(await count()).to.equal('0');
    });
  });

  describe('a result', () => {
    it('returns a result of PostgreSQL that just fits', async () => {
      const text = await queryText(sql.connection, "SELECT repeat('x', 67000000) AS v");
      expect(text.length).to.be.within(67_000_000, 67_000_100);
    });

    it('does not receive a message of PostgreSQL that is larger than any answer', async () => {
      const one = sql.connection.call(sqlCall('query', "SELECT repeat('x', 400000000)"));
      expect(await failsWith('backend', one)).to.include(
        'one may have 160 MiB (2.5 times SERVICE_ANSWER_MB, 64)',
      );
      expect(await value('SELECT 1 AS v')).to.equal('1');
      expect(sql.lost).to.deep.equal([]);
    });
  });

  describe('lost connections', () => {
    it('reports a lost connection to PostgreSQL when no new one can be opened', async () => {
      const account = 'ALTER ROLE passing CONNECTION LIMIT';
      await execute(sql.connection, "CREATE ROLE passing LOGIN PASSWORD 'p'");
      const other = await connectSql(postgresService, {
        ...{ ...backend.config, username: 'passing', password: 'p', pool_size: 1 },
      });
      try {
        const pid = await valueText(other.connection, 'SELECT pg_backend_pid()');
        await execute(sql.connection, `${account} 0`);
        await query(sql.connection, 'SELECT pg_terminate_backend(?)', Number(pid));
        await eventually(() => expect(other.lost).to.have.lengthOf(1));
        expect(other.lost[0]).to.have.property('kind', 'unavailable');
        await execute(sql.connection, `${account} -1`);
        // The process connects again after a pause.
        await eventually(() => valueText(other.connection, 'SELECT 1 AS v'));
        const ending = sqlCall('query', 'SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)');
        await failsWith('backend', other.connection.call(ending));
        const sleeping = other.connection.call(sqlCall('query', 'SELECT pg_sleep(65)'));
        const active = "SELECT max(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(65)'";
        await eventually(async () => expect(await value(active)).to.not.equal('null'));
        await execute(sql.connection, `${account} 0`);
        await query(sql.connection, 'SELECT pg_terminate_backend(?)', Number(await value(active)));
        await failsWith('unavailable', sleeping);
      } finally {
        await other.connection.close();
      }
    });
  });
});
