import { expect } from 'chai';
import fc from 'fast-check';
import { postgresDriver } from '../../../src/actors/drivers/postgres.js';
import { failsWith } from '../../support/actors.js';
import { type PostgresBackend, startPostgresBackend } from '../../support/backends/postgres-tls.js';
import { eventually } from '../../support/eventually.js';
import { pendingCall } from '../../support/pending-call.js';
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

driverSuite(postgresDriver, {
  start: startPostgresBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: {
    operation: 'query',
    payload: JSON.stringify({ sql: 'SELECT 1 AS one' }),
    check: ({ payload }) =>
      expect(payload).to.equal('{"columns":["one"],"rows":[[1]],"rows_affected":0,"last_insert_id":null}'),
  },
});

describe('driver postgres', () => {
  let backend: PostgresBackend;
  let sql: SqlConnection;

  before(async () => {
    backend = await startPostgresBackend();
    sql = await connectSql(postgresDriver, { ...backend.config, pool_size: 2 });
  });
  after(async () => {
    await sql?.connection.close();
    await backend?.remove();
  });

  const value = (statement: string, ...params: Parameters<typeof query>[2][]) =>
    valueText(sql.connection, statement, ...params);

  it('says what answered', async () => {
    expect(await sql.connection.test()).to.match(/^PostgreSQL \d+\.\d+$/);
  });

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
      it(`${expression} is ${json}`, async () => {
        expect(await value(`SELECT ${expression} AS v`)).to.equal(json);
      });
    }

    it('has all bytes', async () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_value, i) => i)).toString('base64');
      expect(await value('SELECT ?::bytea', { blob: bytes })).to.equal(`"${bytes}"`);
      expect(await value('SELECT length(?::bytea)', { blob: bytes })).to.equal('256');
    });

    it('has arrays of any texts', async () => {
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

    it('has arrays of types that were made after it connected', async () => {
      await execute(sql.connection, "CREATE TYPE mood AS ENUM ('so, so', 'fine')");
      await execute(sql.connection, 'CREATE DOMAIN small AS int4');
      const text = `SELECT ARRAY['so, so'::mood, NULL] AS moods, 'fine'::mood AS mood, ARRAY[1::small] AS small`;
      const expected = [[['so, so', null], 'fine', [1]]];
      expect((await query(sql.connection, text)).rows).to.deep.equal(expected);
      expect((await query(sql.connection, text)).rows).to.deep.equal(expected);
    });

    it('keeps what a role has set from changing the texts', async () => {
      const { database } = backend.config;
      await execute(sql.connection, `ALTER DATABASE ${database} SET TimeZone = 'Asia/Tokyo'`);
      await execute(sql.connection, `ALTER DATABASE ${database} SET DateStyle = 'German'`);
      const other = await connectSql(postgresDriver, backend.config);
      try {
        const text = await valueText(other.connection, "SELECT timestamptz '2026-01-31 00:00:00+00'");
        expect(text).to.equal('"2026-01-31T00:00:00Z"');
      } finally {
        await other.connection.close();
      }
    });
  });

  describe('parameters', () => {
    it('are of every kind', async () => {
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

    it('stand for ?, or for $1', async () => {
      expect(await value('SELECT ?::int4 - ?::int4 AS "?" -- ?', 5, 3).catch(String)).to.equal('2');
      expect(await value('SELECT $2::int4 - $1::int4 - $1::int4', 3, 10)).to.equal('4');
      expect(await value(`SELECT '{"a":1}'::jsonb ?? ?::text`, 'a')).to.equal('true');
      expect(await value(`SELECT '{"a":1}'::jsonb ? $1::text`, 'a')).to.equal('true');
      expect(await value("SELECT $$ $1 ? $$ || $x$ ? $x$ || '?' || E'\\'?' || ?::text", 'x')).to.equal(
        `" $1 ?  ? ?'?x"`,
      );
    });

    it('are any text', async () => {
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
          fc.pre(!text.includes('\0'));
          expect(JSON.parse(await value('SELECT ?::text AS v', text))).to.equal(text);
        }),
        { numRuns: 50 },
      );
    });

    it('are counted', async () => {
      const few = await failsWith('invalid', sql.connection.call(sqlCall('query', 'SELECT ?, ?', [1])));
      expect(few).to.include('2 placeholders').and.to.include('1 parameter ');
      const many = await failsWith('invalid', sql.connection.call(sqlCall('query', 'SELECT $1', [1, 2])));
      expect(many).to.include('1 placeholder ').and.to.include('2 parameters');
    });
  });

  describe('statements', () => {
    before(() => execute(sql.connection, 'CREATE TABLE things (id int PRIMARY KEY, name text)'));
    beforeEach(() => execute(sql.connection, 'TRUNCATE things'));

    it('tell how many rows they have changed', async () => {
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

    it('fail with what the database says', async () => {
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

    it('are refused when they would change a shared connection', async () => {
      for (const text of [
        'BEGIN',
        '/* x */ start transaction',
        '; commit',
        'ROLLBACK',
        'SAVEPOINT a',
        'END',
      ]) {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('execute', text)));
        expect(message, text).to.include('use a transaction');
      }
      for (const text of ["SET TimeZone = 'UTC'", 'DISCARD ALL', 'LISTEN x', 'COPY things TO STDOUT']) {
        await failsWith('invalid', sql.connection.call(sqlCall('execute', text)));
      }
    });

    it('work again when the type of their result has changed', async () => {
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

    it('are prepared, but not for ever', async () => {
      for (let i = 0; i < 450; i++) expect(await value(`SELECT ${i} AS v`)).to.equal(String(i));
      const prepared = Number(await value('SELECT count(*) FROM pg_prepared_statements'));
      expect(prepared).to.be.within(2, 201);
    });
  });

  describe('transactions', () => {
    before(() => execute(sql.connection, 'CREATE TABLE moves (id int)'));
    beforeEach(() => execute(sql.connection, 'TRUNCATE moves'));
    const count = () => value('SELECT count(*) FROM moves');

    it('are committed, or rolled back', async () => {
      const first = await sql.begin();
      await execute(first, 'INSERT INTO moves VALUES (1)');
      expect(await valueText(first, 'SELECT count(*) FROM moves')).to.equal('1');
      expect(await count()).to.equal('0');
      await first.commit(pendingCall('commit'));
      expect(await count()).to.equal('1');
      const second = await sql.begin();
      await execute(second, 'DELETE FROM moves');
      await second.rollback();
      expect(await count()).to.equal('1');
    });

    it('have savepoints and settings of their own', async () => {
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

    it('are not committed after a statement has failed', async () => {
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO moves VALUES (1)');
      await failsWith('backend', transaction.call(sqlCall('execute', 'INSERT INTO moves VALUES (?)', ['x'])));
      const outcome = await transaction.commit(pendingCall('commit')).then(() => 'committed', String);
      expect(outcome).to.include('rolled back');
      expect(await count()).to.equal('0');
    });

    it('end with a call that is given up', async () => {
      const transaction = await sql.begin();
      await execute(transaction, 'INSERT INTO moves VALUES (1)');
      const abort = new AbortController();
      const sleeping = transaction.call(sqlCall('query', 'SELECT pg_sleep(60)', [], abort.signal));
      await eventually(async () => {
        const text =
          "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'";
        expect(await value(text)).to.equal('1');
      });
      abort.abort();
      await failsWith('deadline', sleeping);
      await failsWith('invalid', transaction.call(sqlCall('query', 'SELECT 1')));
      await transaction.rollback();
      expect(await count()).to.equal('0');
    });
  });

  describe('what is given up or too large', () => {
    it('is cancelled on the server, and its connection is free', async () => {
      const aborts = [new AbortController(), new AbortController()];
      const sleeping = aborts.map(({ signal }) =>
        failsWith('deadline', sql.connection.call(sqlCall('query', 'SELECT pg_sleep(61)', [], signal))),
      );
      const other = await connectSql(postgresDriver, backend.config);
      const active = () =>
        valueText(
          other.connection,
          "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(61)' AND state = 'active'",
        );
      try {
        await eventually(async () => expect(await active()).to.equal('2'));
        for (const abort of aborts) abort.abort();
        await Promise.all(sleeping);
        await eventually(async () => expect(await active()).to.equal('0'));
        expect(await value('SELECT 1 AS v')).to.equal('1');
        expect(sql.lost).to.deep.equal([]);
      } finally {
        await other.connection.close();
      }
    });

    for (const [what, text] of [
      ['many rows', "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)"],
      ['one value', "SELECT repeat('x', 400000000)"],
      ['bytes that grow', "SELECT repeat('x', 30000000)::bytea, repeat('y', 25000000)::bytea"],
    ] as const) {
      it(`is refused: ${what}`, async () => {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('query', text)));
        expect(message).to.include('larger than 64 MiB');
        expect(await value('SELECT 1 AS v')).to.equal('1');
        expect(sql.lost).to.deep.equal([]);
      });
    }

    it('is not when it just fits', async () => {
      const text = await queryText(sql.connection, "SELECT repeat('x', 67000000) AS v");
      expect(text.length).to.be.within(67_000_000, 67_000_100);
    });
  });

  describe('lost connections', () => {
    it('are replaced when nobody is calling', async () => {
      const idle = await connectSql(postgresDriver, backend.config);
      try {
        const pid = await valueText(idle.connection, 'SELECT pg_backend_pid()');
        await query(sql.connection, 'SELECT pg_terminate_backend(?)', Number(pid));
        await eventually(async () => {
          expect(await valueText(idle.connection, 'SELECT pg_backend_pid()')).to.not.equal(pid);
        });
        expect(idle.lost).to.deep.equal([]);
      } finally {
        await idle.connection.close();
      }
    });

    it('fail the call that meets it, and no other', async () => {
      const sleeping = value("SELECT 'slept' FROM pg_sleep(0.5)");
      const message = await failsWith(
        'backend',
        sql.connection.call(sqlCall('query', 'SELECT pg_terminate_backend(pg_backend_pid())')),
      );
      expect(message).to.match(/57P01/).and.to.include('whether the call was done is not known');
      expect(await value('SELECT 1 AS v')).to.equal('1');
      expect(await sleeping).to.equal('"slept"');
      expect(sql.lost).to.deep.equal([]);
    });

    it('are told when no new one can be made', async () => {
      const account = 'ALTER ROLE passing CONNECTION LIMIT';
      await execute(sql.connection, "CREATE ROLE passing LOGIN PASSWORD 'p'");
      const other = await connectSql(postgresDriver, {
        ...{ ...backend.config, username: 'passing', password: 'p', pool_size: 1 },
      });
      try {
        const pid = await valueText(other.connection, 'SELECT pg_backend_pid()');
        await execute(sql.connection, `${account} 0`);
        await query(sql.connection, 'SELECT pg_terminate_backend(?)', Number(pid));
        await eventually(() => expect(other.lost).to.have.lengthOf(1));
        expect(other.lost[0]).to.have.property('kind', 'unavailable');
        await execute(sql.connection, `${account} -1`);
        const ending = sqlCall('query', 'SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)');
        await failsWith('backend', other.connection.call(ending));
        const sleeping = other.connection.call(sqlCall('query', 'SELECT pg_sleep(64)'));
        const active = "SELECT max(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(64)'";
        await eventually(async () => expect(await value(active)).to.not.equal('null'));
        await execute(sql.connection, `${account} 0`);
        await query(sql.connection, 'SELECT pg_terminate_backend(?)', Number(await value(active)));
        await failsWith('unavailable', sleeping);
      } finally {
        await other.connection.close();
      }
    });

    it('are closed when calls hang', async () => {
      const other = await connectSql(postgresDriver, backend.config);
      const sleeping = failsWith(
        'unavailable',
        other.connection.call(sqlCall('query', 'SELECT pg_sleep(62)')),
      );
      await other.connection.close();
      await sleeping;
      expect(other.lost).to.deep.equal([]);
    });
  });
});
