/** A connection to MySQL or MariaDB, leased to a call or a transaction. */
import mysql, { type ExecuteValues } from 'mysql2';
import type { DriverCall } from '../../driver-call.js';
import type { DriverAnswer } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import { isServerError, isTooLarge, type MysqlConfig } from './errors.js';
import type { Lease, PreparedCall } from './pooled-connection.js';
import { type MysqlResult, runStatement, runText } from './query.js';
import { connectionOptions, type OpenConnection, type SessionStatus } from './session.js';
import type { Sockets } from './sockets.js';
import { encodeParam } from './types.js';

/** Timeout of the KILL statement. */
const KILL_TIMEOUT_MS = 5_000;

const ROLLED_BACK =
  'the transaction was rolled back by the server, because a statement in it has failed: begin it again';
const ENDED =
  'the transaction has ended with the statement before, which commits by itself, as CREATE, ALTER, DROP and the like do';
const LEFT_OPEN =
  'the statement has left a transaction open or has turned autocommit off, and was rolled back: begin, commit and rollback are operations of their own';

export class MysqlLease implements Lease {
  readonly #connection: OpenConnection;
  readonly #config: MysqlConfig;
  readonly #sockets: Sockets;
  isOver = false;
  transactionFailure: ServiceError | undefined;
  #isInTransaction = false;
  /** Whether the session state is as the next call expects, according to the last status of the server. */
  #isClean = true;
  /** Rejects the statement in progress. */
  #stop: ((error: Error) => void) | undefined;

  constructor(connection: OpenConnection, config: MysqlConfig, sockets: Sockets) {
    this.#connection = connection;
    this.#config = config;
    this.#sockets = sockets;
  }

  async run({ sql, params, wantsRows }: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    // The typings of the library do not include the objects that its factories create.
    const values = params.map(encodeParam) as ExecuteValues[];
    const { text, rowsAffected, lastInsertId } = await this.#unlessAborted(call, async (whenStopped) => {
      const result = await runStatement(this.#connection, { sql, values, wantsRows }, whenStopped);
      this.#requireClean(result.status);
      return result;
    });
    if (text !== undefined) return { payload: text };
    return { result: { rows_affected: rowsAffected, last_insert_id: lastInsertId } };
  }

  async control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    const { status } = await this.#unlessAborted(call, (stop) => runText(this.#connection, sql, stop));
    this.#isInTransaction = sql === 'BEGIN';
    this.#isClean = status.isClean;
    return sql;
  }

  release(): void {
    if (!this.#isClean) this.destroy();
    if (this.isOver) return;
    this.isOver = true;
    this.#connection.release();
  }

  destroy(reason = new ServiceError('unavailable', 'the connection was closed')): void {
    if (this.isOver) return;
    this.isOver = true;
    kill(this.#connection.threadId, this.#config, this.#sockets);
    this.#connection.destroy();
    this.#connection.stream.destroy();
    this.#stop?.(reason);
  }

  /** Runs a statement; when the call is aborted, the connection is destroyed. */
  async #unlessAborted(
    call: DriverCall | undefined,
    run: (whenStopped: (stop: (error: Error) => void) => void) => Promise<MysqlResult>,
  ): Promise<MysqlResult> {
    const cancelled = new ServiceError('deadline', 'the statement was cancelled');
    call?.onAbort(() => this.destroy(cancelled));
    // It was aborted already.
    if (this.isOver) throw cancelled;
    const whenStopped = (stop: (error: Error) => void) => {
      this.#stop = stop;
    };
    try {
      return await run(whenStopped);
    } catch (thrown) {
      // The server is still sending rows.
      if (thrown instanceof ServiceError || isTooLarge(thrown)) this.destroy();
      else if (isServerError(thrown)) await this.#checkAfterError(whenStopped);
      throw thrown;
    } finally {
      this.#stop = undefined;
      call?.onAbort(undefined);
    }
  }

  /** Queries the transaction state after an error: a deadlock ends the transaction, most errors do not. */
  async #checkAfterError(whenStopped: (stop: (error: Error) => void) => void): Promise<void> {
    try {
      const { status } = await runText(this.#connection, 'DO 0', whenStopped);
      this.#isClean = status.isClean;
      if (this.#isInTransaction && !status.isInTransaction) this.#endTransaction(ROLLED_BACK);
    } catch {
      // The original error is reported.
      this.destroy();
    }
  }

  #requireClean(status: SessionStatus): void {
    this.#isClean = status.isClean;
    if (this.#isInTransaction) {
      if (!status.isInTransaction) this.#endTransaction(ENDED);
    } else if (!status.isClean) {
      throw new ServiceError('invalid', LEFT_OPEN);
    }
  }

  /** Refuses further statements, which would be committed one by one. */
  #endTransaction(reason: string): void {
    this.#isInTransaction = false;
    this.transactionFailure = new ServiceError('backend', reason);
  }
}

/** Kills a connection on the server over another one. Best effort. */
function kill(threadId: number, config: MysqlConfig, sockets: Sockets): void {
  if (sockets.isClosed) return;
  const other = mysql.createConnection({
    ...connectionOptions(config, sockets),
    connectTimeout: KILL_TIMEOUT_MS,
  });
  other.on('error', () => other.destroy());
  other.query({ sql: `KILL ${threadId}`, timeout: KILL_TIMEOUT_MS }, () => other.destroy());
}
