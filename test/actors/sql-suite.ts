/** The common tests of SQL drivers, in addition to those of all drivers, against a real server. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Driver } from '../../src/actors/driver.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import { failsWith } from '../support/actors.js';
import { pendingCall } from '../support/callable-connection.js';
import { eventually } from '../support/eventually.js';
import {
  connectSql,
  execute,
  type Param,
  query,
  type SqlConnection,
  sqlCall,
  valueText,
} from '../support/sql-calls.js';

/** Options of the suite for one driver. */
export interface SqlSuite<T extends ServiceType> {
  readonly driver: Driver<T>;
  /** Config of a server that the caller starts and stops. */
  readonly config: () => ServiceConfig<T>;
  /** The same with a pool of one connection. */
  readonly single: (config: ServiceConfig<T>) => ServiceConfig<T>;
  readonly version: RegExp;
  /** Queries that return their parameter. */
  readonly echo: { readonly text: string; readonly blob: string };
  readonly refused: { readonly transactions: readonly string[]; readonly others: readonly string[] };
  /** Statements, successful or not, that must not change the connection. */
  readonly clean: readonly string[];
  readonly tooLarge: readonly (readonly [what: string, sql: string])[];
}

export function sqlSuite<T extends ServiceType>(suite: SqlSuite<T>): void {
  const { driver } = suite;
  describe(`driver ${driver.type}: common tests of SQL drivers`, () => {
    let sql: SqlConnection;
    before(async () => {
      sql = await connectSql(driver, suite.config());
      await execute(sql.connection, 'CREATE TABLE suite_moves (id INTEGER)');
    });
    beforeEach(() => execute(sql.connection, 'DELETE FROM suite_moves'));
    after(() => sql?.connection.close());

    const value = (statement: string, ...params: Param[]) => valueText(sql.connection, statement, ...params);
    const count = () => value('SELECT count(*) FROM suite_moves');

    it(`the driver of ${driver.type} reports the product and its version`, async () => {
      expect(await sql.connection.test()).to.match(suite.version);
    });

    it(`the driver of ${driver.type} returns all bytes`, async () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_value, i) => i)).toString('base64');
      expect(await value(suite.echo.blob, { blob: bytes })).to.equal(`"${bytes}"`);
    });

    it(`the driver of ${driver.type} returns any text`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
          fc.pre(!text.includes('\0'));
          expect(JSON.parse(await value(suite.echo.text, text))).to.equal(text);
        }),
        { numRuns: 50 },
      );
    });

    it(`the driver of ${driver.type} refuses a statement with too few or too many parameters`, async () => {
      const few = await failsWith('invalid', sql.connection.call(sqlCall('query', 'SELECT ?, ?', [1])));
      expect(few).to.include('2 placeholders').and.to.include('1 parameter ');
      const many = await failsWith('invalid', sql.connection.call(sqlCall('query', 'SELECT ?', [1, 2])));
      expect(many).to.include('1 placeholder ').and.to.include('2 parameters');
    });

    it(`the driver of ${driver.type} answers each concurrent call with its own result`, async () => {
      const texts = Array.from({ length: 2_000 }, (_value, i) => `text ${i}`);
      const answers = await Promise.all(texts.map((text) => value(suite.echo.text, text)));
      expect(answers).to.deep.equal(texts.map((text) => `"${text}"`));
    });

    it(`the driver of ${driver.type} refuses BEGIN, COMMIT and the like, and says to use a transaction`, async () => {
      for (const text of suite.refused.transactions) {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('execute', text)));
        expect(message, text).to.include('use a transaction');
      }
    });

    it(`the driver of ${driver.type} refuses statements that would change a shared connection`, async () => {
      for (const text of suite.refused.others) {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('execute', text)));
        expect(message, text).to.include('is not possible here');
      }
    });

    describe('the connection of the next call', () => {
      let single: SqlConnection;
      before(async () => {
        single = await connectSql(driver, suite.single(suite.config()));
      });
      after(() => single?.connection.close());

      for (const statement of suite.clean) {
        it(`the driver of ${driver.type} gives the next call a clean connection after: ${statement}`, async () => {
          await single.connection.call(sqlCall('query', statement)).catch(() => undefined);
          await execute(single.connection, 'INSERT INTO suite_moves VALUES (1)');
          // Other connections see only committed data.
          expect(await count()).to.equal('1');
          expect(await valueText(single.connection, 'SELECT count(*) FROM suite_moves')).to.equal('1');
          expect(single.lost).to.deep.equal([]);
        });
      }
    });

    it(`the driver of ${driver.type} commits and rolls back transactions`, async () => {
      const first = await sql.begin();
      await execute(first, 'INSERT INTO suite_moves VALUES (1)');
      expect(await valueText(first, 'SELECT count(*) FROM suite_moves')).to.equal('1');
      expect(await count()).to.equal('0');
      await first.commit(pendingCall('commit'));
      expect(await count()).to.equal('1');
      const second = await sql.begin();
      await execute(second, 'DELETE FROM suite_moves');
      await execute(second, 'SAVEPOINT a');
      await failsWith('invalid', second.call(sqlCall('execute', 'COMMIT')));
      await second.rollback();
      expect(await count()).to.equal('1');
      await failsWith('invalid', second.call(sqlCall('execute', 'DELETE FROM suite_moves')));
    });

    for (const [what, text] of suite.tooLarge) {
      it(`the driver of ${driver.type} refuses a result that is too large: ${what}`, async () => {
        const message = await failsWith('invalid', sql.connection.call(sqlCall('query', text)));
        expect(message).to.include('larger than 64 MiB');
        expect((await query(sql.connection, 'SELECT 1 AS v')).rows).to.deep.equal([[1]]);
        expect(sql.lost).to.deep.equal([]);
      });
    }

    it(`the driver of ${driver.type} fails calls after its connection was closed`, async () => {
      const other = await connectSql(driver, suite.config());
      await other.connection.close();
      await failsWith('unavailable', other.connection.call(sqlCall('query', 'SELECT 1')));
      expect(other.lost).to.deep.equal([]);
    });
  });
}

/** Additional tests of drivers with a pool of connections to a server. */
export interface PoolSuite<T extends ServiceType> {
  readonly driver: Driver<T>;
  readonly config: () => ServiceConfig<T> & { readonly host: string; readonly port: number };
  /** A query for the id of the connection, and a statement that kills a connection on the server. */
  readonly id: string;
  readonly end: (id: number) => string;
  /** Sleeps on the server. */
  readonly sleep: (seconds: number) => string;
  /** A query for the ids of the connections that run the given statement. */
  readonly running: string;
  /** Writes to the table `held` so that the commit of the transaction blocks. @returns a function that unblocks it */
  readonly holdCommit: (write: () => Promise<unknown>) => Promise<() => Promise<void>>;
}

export function poolSuite<T extends ServiceType>(suite: PoolSuite<T>): void {
  const { driver, sleep } = suite;
  describe(`driver ${driver.type}: its pool`, () => {
    let sql: SqlConnection;
    let other: SqlConnection;
    beforeEach(async () => {
      sql = await connectSql(driver, suite.config());
      other = await connectSql(driver, suite.config());
    });
    afterEach(async () => {
      await sql?.connection.close();
      await other?.connection.close();
    });

    const running = async (statement: string): Promise<number[]> => {
      const { rows } = await query(sql.connection, suite.running, statement);
      return rows.map(([id]) => Number(id));
    };
    const begun = (statement: string, times = 1) =>
      eventually(async () => expect(await running(statement)).to.have.lengthOf(times));
    const answers = async (on: SqlConnection) => {
      expect(await valueText(on.connection, 'SELECT 1 AS v')).to.equal('1');
    };

    it(`the pool of ${driver.type} cancels aborted calls on the server, and frees their connections`, async () => {
      const aborts = [new AbortController(), new AbortController()];
      const sleeping = aborts.map(({ signal }) =>
        failsWith('deadline', other.connection.call(sqlCall('query', sleep(61), [], signal))),
      );
      await begun(sleep(61), 2);
      for (const abort of aborts) abort.abort();
      await Promise.all(sleeping);
      await eventually(async () => expect(await running(sleep(61))).to.deep.equal([]));
      await answers(other);
      expect(other.lost).to.deep.equal([]);
    });

    it(`the pool of ${driver.type} ends a transaction when a call in it is aborted`, async () => {
      const abort = new AbortController();
      const transaction = await other.begin();
      const sleeping = transaction.call(sqlCall('query', sleep(60), [], abort.signal));
      await begun(sleep(60));
      abort.abort();
      await failsWith('deadline', sleeping);
      await failsWith('invalid', transaction.call(sqlCall('query', 'SELECT 1')));
      await transaction.rollback();
      await eventually(async () => expect(await running(sleep(60))).to.deep.equal([]));
    });

    it(`the pool of ${driver.type} cancels an aborted commit, and frees its connection`, async () => {
      await execute(sql.connection, 'CREATE TABLE held (id INTEGER)');
      const transaction = await other.begin();
      const release = await suite.holdCommit(() => execute(transaction, 'INSERT INTO held VALUES (1)'));
      try {
        const abort = new AbortController();
        const committed = transaction.commit(pendingCall('commit', undefined, '', abort.signal));
        const outcome = committed.then(() => 'committed', String);
        await begun('COMMIT');
        abort.abort();
        // A process is not told of an abort: the call has a deadline instead.
        expect(await outcome).to.match(/was cancelled|did not answer within/);
        await eventually(async () => expect(await running('COMMIT')).to.deep.equal([]));
        await transaction.rollback();
      } finally {
        await release();
      }
      await answers(other);
      expect(other.lost).to.deep.equal([]);
    });

    it(`the pool of ${driver.type} replaces an idle connection that is lost`, async () => {
      const id = await valueText(other.connection, suite.id);
      await query(sql.connection, suite.end(Number(id)));
      await eventually(async () => expect(await valueText(other.connection, suite.id)).to.not.equal(id));
      expect(other.lost).to.deep.equal([]);
    });

    it(`the pool of ${driver.type} fails only the call whose connection is lost`, async () => {
      const calls = [62, 63].map((seconds) => other.connection.call(sqlCall('query', sleep(seconds))));
      const [first, second] = calls.map((call) => call.then(() => 'answered', String));
      await begun(sleep(62));
      await begun(sleep(63));
      const [id] = await running(sleep(62));
      await query(sql.connection, suite.end(id ?? 0));
      expect(await first).to.include('whether the call was done is not known');
      expect(await running(sleep(63))).to.have.lengthOf(1);
      await answers(other);
      expect(other.lost).to.deep.equal([]);
      await other.connection.close();
      expect(await second).to.include('closed');
    });

    it(`the pool of ${driver.type} closes while calls hang`, async () => {
      const sleeping = failsWith('unavailable', other.connection.call(sqlCall('query', sleep(64))));
      await begun(sleep(64));
      await other.connection.close();
      await sleeping;
      expect(other.lost).to.deep.equal([]);
    });
  });
}

/** The harmless call of `driverSuite`. */
export const SELECT_ONE = {
  operation: 'query',
  payload: JSON.stringify({ sql: 'SELECT 1 AS one' }),
  check: ({ payload }: DriverAnswer) =>
    expect(payload).to.equal('{"columns":["one"],"rows":[[1]],"rows_affected":0,"last_insert_id":null}'),
};
