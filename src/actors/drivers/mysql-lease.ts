/** A connection to MySQL or MariaDB, while a call or a transaction has it. */
import mysql, { type ExecuteValues } from 'mysql2';
import type { DriverAnswer, DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Lease } from '../sql/pooled-connection.js';
import type { PreparedCall } from '../sql/prepare-call.js';
import type { Sockets } from '../sql/sockets.js';
import { connectionOptions, type MysqlConfig } from './mysql-connect.js';
import { isServerError, isTooLarge } from './mysql-errors.js';
import { type MysqlResult, runStatement, runText } from './mysql-query.js';
import type { OpenConnection, SessionStatus } from './mysql-session.js';
import { encodeParam } from './mysql-types.js';

/** Ending a statement on the server may take this long. */
const KILL_TIMEOUT_MS = 5_000;

const ROLLED_BACK =
  'the transaction was rolled back by the server, because a statement in it has failed: begin it again';
const ENDED =
  'the transaction has ended with the statement before, which commits by itself, as CREATE, ALTER, DROP and the like do';
const LEFT_OPEN =
  'the statement has left a transaction open or has turned autocommit off, and was rolled back: begin, commit and rollback are operations of their own';

export class MysqlLease implements Lease {
  isOver = false;
  transactionFailure: ServiceError | undefined;
  private isInTransaction = false;
  /** What the server has last told, when that is not fit for the next call. */
  private isClean = true;
  /** Ends the statement under way, for whoever waits for it. */
  private stop: ((error: Error) => void) | undefined;

  constructor(
    private readonly connection: OpenConnection,
    private readonly config: MysqlConfig,
    private readonly sockets: Sockets,
  ) {}

  async run({ sql, params, wantsRows }: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    // The library takes what its factories make, though its typings of values of objects are narrower.
    const values = params.map(encodeParam) as ExecuteValues[];
    const { text, rowsAffected, lastInsertId } = await this.unlessAborted(call, async (whenStopped) => {
      const result = await runStatement(this.connection, { sql, values, wantsRows }, whenStopped);
      this.requireClean(result.status);
      return result;
    });
    if (text !== undefined) return { payload: text };
    return { result: { rows_affected: rowsAffected, last_insert_id: lastInsertId } };
  }

  async control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    const { status } = await this.unlessAborted(call, (stop) => runText(this.connection, sql, stop));
    this.isInTransaction = sql === 'BEGIN';
    this.isClean = status.isClean;
    return sql;
  }

  release(): void {
    if (!this.isClean) this.destroy();
    if (this.isOver) return;
    this.isOver = true;
    this.connection.release();
  }

  destroy(reason = new ServiceError('unavailable', 'the connection was closed')): void {
    if (this.isOver) return;
    this.isOver = true;
    kill(this.connection.threadId, this.config, this.sockets);
    this.connection.destroy();
    this.connection.stream.destroy();
    this.stop?.(reason);
  }

  /** Runs something that ends, and takes the connection with it, when the call is aborted. */
  private async unlessAborted(
    call: DriverCall | undefined,
    run: (whenStopped: (stop: (error: Error) => void) => void) => Promise<MysqlResult>,
  ): Promise<MysqlResult> {
    const cancelled = new ServiceError('deadline', 'the statement was cancelled');
    call?.onAbort(() => this.destroy(cancelled));
    // It was aborted before.
    if (this.isOver) throw cancelled;
    const whenStopped = (stop: (error: Error) => void) => {
      this.stop = stop;
    };
    try {
      return await run(whenStopped);
    } catch (thrown) {
      // Rows of it are still on their way.
      if (thrown instanceof ServiceError || isTooLarge(thrown)) this.destroy();
      else if (isServerError(thrown)) await this.noticeFailure(whenStopped);
      throw thrown;
    } finally {
      this.stop = undefined;
      call?.onAbort(undefined);
    }
  }

  /** An error does not tell what has become of the transaction: a deadlock ends all of it, most errors do not. */
  private async noticeFailure(whenStopped: (stop: (error: Error) => void) => void): Promise<void> {
    try {
      const { status } = await runText(this.connection, 'DO 0', whenStopped);
      this.isClean = status.isClean;
      if (this.isInTransaction && !status.isInTransaction) this.transactionIsOver(ROLLED_BACK);
    } catch {
      // The error that is answered says more.
      this.destroy();
    }
  }

  private requireClean(status: SessionStatus): void {
    this.isClean = status.isClean;
    if (this.isInTransaction) {
      if (!status.isInTransaction) this.transactionIsOver(ENDED);
    } else if (!status.isClean) {
      throw new ServiceError('invalid', LEFT_OPEN);
    }
  }

  /** What came after would be committed statement by statement. */
  private transactionIsOver(reason: string): void {
    this.isInTransaction = false;
    this.transactionFailure = new ServiceError('backend', reason);
  }
}

/** Ends a connection on the server, by another one; as good as it gets, nobody waits for it. */
function kill(threadId: number, config: MysqlConfig, sockets: Sockets): void {
  if (sockets.isClosed) return;
  const other = mysql.createConnection({
    ...connectionOptions(config, sockets),
    connectTimeout: KILL_TIMEOUT_MS,
  });
  other.on('error', () => other.destroy());
  other.query({ sql: `KILL ${threadId}`, timeout: KILL_TIMEOUT_MS }, () => other.destroy());
}
