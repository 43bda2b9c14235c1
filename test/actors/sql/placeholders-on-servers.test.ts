/** Random statements with placeholders among strings, names and comments, run by the real databases. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createConnection } from 'mysql2/promise';
import { scanSql } from '../../../src/actors/sql/placeholders.js';
import { BACKENDS, type RunningBackend } from '../../support/backends/all.js';
import { type MariadbBackend, startMariadbBackend } from '../../support/backends/mariadb.js';
import { type NativeService, postgresService, sqliteService } from '../../support/native-service.js';
import { connectSql, query } from '../../support/sql-calls.js';

/** A column of a SELECT: its SQL text, its value, and whether the value is a parameter. */
interface Column {
  readonly sql: string;
  readonly value: string;
  readonly isParam: boolean;
}

/** Runs a statement; resolves with the values of its only row. */
type Run = (sql: string, params: readonly string[]) => Promise<readonly unknown[]>;

/** Text that is difficult for scanners. */
const text = fc.string({
  unit: fc.constantFrom(...'?$1:@\'"`\\/*-#[]; aE\n', '??', '--', '/*', '*/', '$$', '$a$'),
  maxLength: 8,
});

const doubled = (value: string, quote: string) => `${quote}${value.replaceAll(quote, quote + quote)}${quote}`;
const escaped = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Statements of PostgreSQL and SQLite are scanned by the processes of their services. */
type Dialect = 'postgres' | 'sqlite' | 'mysql';

/** The syntax of strings and comments of a database. */
const WRITTEN: Readonly<Record<Dialect, { strings: Spell[]; comments: Spell[]; cast: string }>> = {
  postgres: {
    strings: [
      (value) => doubled(value, "'"),
      (value) => `E${escaped(value)}`,
      (value) => (value.includes('$q') || value.endsWith('$') ? doubled(value, "'") : `$q$${value}$q$`),
    ],
    comments: [(value) => `/* ${withoutEdges(value)} /* ? */ */`, (value) => `-- ${oneLine(value)}\n`],
    cast: 'CAST(? AS text)',
  },
  mysql: {
    strings: [escaped, (value) => `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`],
    comments: [
      (value) => `/* ${withoutEdges(value)} */`,
      (value) => `-- ${oneLine(value)}\n`,
      (value) => `# ${oneLine(value)}\n`,
    ],
    cast: 'CAST(? AS char)',
  },
  sqlite: {
    strings: [(value) => doubled(value, "'")],
    comments: [(value) => `/* ${withoutEdges(value)} */`, (value) => `-- ${oneLine(value)}\n`],
    cast: 'CAST(? AS text)',
  },
};
type Spell = (value: string) => string;

const withoutEdges = (value: string) => value.replaceAll('*', '').replaceAll('/', '');
const oneLine = (value: string) => value.replaceAll('\n', '');

function columns(dialect: Dialect): fc.Arbitrary<Column[]> {
  const { strings, comments, cast } = WRITTEN[dialect];
  const comment = fc.record({ value: text, spell: fc.constantFrom(...comments) });
  const column = fc
    .record({
      value: text,
      isParam: fc.boolean(),
      spell: fc.constantFrom(...strings),
      before: fc.option(comment),
      name: fc.option(text),
    })
    .map(({ value, isParam, spell, before, name }) => {
      const written = isParam ? cast : spell(value);
      const quote = dialect === 'mysql' ? '`' : '"';
      // Names may contain anything but trailing blanks.
      const alias = name === null ? '' : ` AS ${doubled(`${name}n`, quote)}`;
      return { sql: `${before ? before.spell(before.value) : ''} ${written}${alias}`, value, isParam };
    });
  return fc.array(column, { minLength: 1, maxLength: 6 });
}

async function check(dialect: Dialect, run: Run, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(columns(dialect), async (all) => {
      const params = all.filter(({ isParam }) => isParam).map(({ value }) => value);
      const sql = `SELECT ${all.map((column) => column.sql).join(', ')}`;
      if (dialect === 'mysql') expect(scanSql(sql).placeholders, sql).to.equal(params.length);
      expect(await run(sql, params), sql).to.deep.equal(all.map(({ value }) => value));
    }),
    { numRuns },
  );
}

describe('placeholders among strings, names and comments, as the databases read them', () => {
  for (const [service, runs] of [
    [postgresService, 300],
    [sqliteService, 500],
  ] as const) {
    describe(service.type, () => {
      let backend: RunningBackend<'postgres' | 'sqlite'>;
      before(async () => {
        backend = await BACKENDS[service.type]();
      });
      after(() => backend?.remove());

      it(`${service.type} finds the placeholders of a statement where its database does`, async () => {
        const { connection } = await connectSql(
          service as NativeService<'postgres' | 'sqlite'>,
          backend.config,
        );
        try {
          const run: Run = async (sql, params) => (await query(connection, sql, ...params)).rows[0] ?? [];
          await check(service.type, run, runs);
        } finally {
          await connection.close();
        }
      });
    });
  }

  describe('MariaDB', function () {
    this.timeout(120_000);
    let backend: MariadbBackend;
    before(async () => {
      backend = await startMariadbBackend(false);
    });
    after(() => backend?.remove());

    it('scanSql finds the placeholders of a statement where MariaDB does', async () => {
      const { host, port, username: user, password, database } = backend.config;
      const settings = { host, port, user, password: password ?? '', database };
      const connection = await createConnection(settings);
      try {
        const run: Run = async (sql, params) => {
          const [rows] = await connection.execute({ sql, rowsAsArray: true }, [...params]);
          return (rows as unknown[][])[0] ?? [];
        };
        await check('mysql', run, 300);
      } finally {
        await connection.end();
      }
    });
  });
});
