/**
 * A database that is reached over a pool of connections, one per call or transaction. A single lost connection is
 * replaced; the database is unavailable when no new one can be opened.
 */
import { toError } from '../../../errors.js';
import { type Connection, type DriverContext, openOrClose, type Transaction } from '../../driver.js';
import type { DriverCall } from '../../driver-call.js';
import { REASONS, unavailable } from '../../failures.js';
import type { DriverAnswer } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import { checkStatement, parseStatement, type SqlTarget, type SqlValue } from '../../sql/statement.js';
import { Sockets } from './sockets.js';

/** The protocol limits the number of parameters to 16 bits. */
const MAX_PARAMS = 65_535;
/** A connection that does not roll back within this time is closed instead. */
const ROLLBACK_TIMEOUT_MS = 5_000;

/** A statement as it is sent to the server. */
export interface PreparedCall {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  readonly wantsRows: boolean;
}

/** A connection leased to a call or a transaction. Its methods reject with errors of the library or a ServiceError. */
export interface Lease {
  /** Whether it was released or closed. */
  readonly isOver: boolean;
  /** Why the server has ended the transaction, if it has. */
  readonly transactionFailure?: ServiceError | undefined;
  /** @param call its abort cancels the statement and closes the connection */
  run(statement: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer>;
  /** Runs transaction control. @returns the command that the server has executed */
  control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string>;
  /** Returns it to the pool; closes it if its session state has changed. */
  release(): void;
  /** Closes it and cancels its statement on the server. */
  destroy(): void;
}

/** The error that a server has returned. */
export interface ServerRefusal {
  readonly text: string;
  readonly endsConnection: boolean;
}

/** The pool of one kind of database. */
export interface SqlPool {
  /** `host:port` */
  readonly where: string;
  /** A query that returns the version of the server. */
  readonly versionQuery: string;
  /** Product and version, from the result of that query. */
  product(version: string): string;
  /** Waits for a free connection; calls back once, with a ServiceError or a connection. */
  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void;
  /** Opens and closes a connection outside of the pool. @throws ServiceError `unavailable` when that fails */
  probe(): Promise<void>;
  /** @returns undefined for an error that does not come from the server */
  refusal(thrown: unknown): ServerRefusal | undefined;
  /** Messages of the library about closed connections. */
  readonly closedMessage: RegExp;
  /** Closes idle connections and accepts no more calls. */
  end(): void;
}

/** Opens the first connection of a pool. @param createPool gets a callback for lost connections */
export function openPooled(
  context: DriverContext,
  createPool: (sockets: Sockets, onConnectionLost: () => void) => SqlPool,
): Promise<PooledConnection> {
  const connection = new PooledConnection(context, createPool);
  return openOrClose(context, connection, () => connection.test());
}

export class PooledConnection implements Connection, SqlTarget {
  readonly #sockets = new Sockets();
  readonly #context: DriverContext;
  /** Rejection callbacks of calls that wait for a connection. */
  readonly #waiting = new Set<() => void>();
  readonly #pool: SqlPool;
  #probing: Promise<void> | undefined;
  #closed = false;

  constructor(
    context: DriverContext,
    createPool: (sockets: Sockets, onConnectionLost: () => void) => SqlPool,
  ) {
    this.#context = context;
    this.#pool = createPool(this.#sockets, () => this.#onConnectionLost());
  }

  async test(): Promise<string> {
    const { versionQuery } = this.#pool;
    const { payload } = await this.#run({ sql: versionQuery, params: [], wantsRows: true }, undefined);
    const { rows } = JSON.parse(String(payload)) as { readonly rows: readonly (readonly unknown[])[] };
    return this.#pool.product(String(rows[0]?.[0]));
  }

  async run(call: DriverCall, wantsRows: boolean): Promise<DriverAnswer> {
    return this.#run(prepare(call, wantsRows, false), call);
  }

  async begin(call: DriverCall): Promise<Transaction> {
    const lease = await this.#acquire();
    try {
      await lease.control('BEGIN', call);
    } catch (thrown) {
      lease.destroy();
      throw await this.#failure(thrown, lease);
    }
    return new PooledTransaction(lease, (thrown) => this.#failure(thrown, lease));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const reject of this.#waiting) reject();
    // Terminates idle sessions. Hanging calls end when the sockets are closed.
    this.#pool.end();
    await this.#sockets.close();
  }

  async #run(statement: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    const lease = await this.#acquire();
    try {
      return await lease.run(statement, call);
    } catch (thrown) {
      throw await this.#failure(thrown, lease);
    } finally {
      lease.release();
    }
  }

  /** Waits for a free connection. */
  #acquire(): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const onClose = () => reject(new ServiceError('unavailable', REASONS.closedHere(this.#pool.where)));
      if (this.#closed) return onClose();
      this.#waiting.add(onClose);
      this.#pool.take((error, lease) => {
        this.#waiting.delete(onClose);
        if (!lease) return reject(error);
        if (!this.#closed) return resolve(lease);
        lease.destroy();
        onClose();
      });
    });
  }

  /** The error of a failed call. It is not `unavailable` if only the connection of this call was lost. */
  async #failure(thrown: unknown, lease: Lease): Promise<ServiceError> {
    const error = this.#callError(thrown);
    if (error.kind !== 'unavailable') return error;
    lease.destroy();
    if (this.#sockets.isClosed) return error;
    try {
      await this.#probe();
    } catch (reason) {
      return this.#callError(reason);
    }
    return new ServiceError(
      'backend',
      `the connection broke during the call, and whether the call was done is not known: ${error.message}`,
      { cause: thrown },
    );
  }

  #callError(thrown: unknown): ServiceError {
    if (thrown instanceof ServiceError) return thrown;
    const { where, closedMessage } = this.#pool;
    const refusal = this.#pool.refusal(thrown);
    if (!refusal) {
      const isClosed = closedMessage.test(toError(thrown).message);
      return unavailable(thrown, where, isClosed ? REASONS.closed(where) : undefined);
    }
    if (refusal.endsConnection) return unavailable(thrown, where, REASONS.ended(where, refusal.text));
    return new ServiceError('backend', refusal.text, { cause: thrown });
  }

  /** A connection, possibly an idle one, was lost, and the pool has removed it. */
  #onConnectionLost(): void {
    if (this.#closed) return;
    this.#probe().catch((thrown: unknown) => {
      if (!this.#closed) this.#context.onLost(this.#callError(thrown));
    });
  }

  /** Checks that the server still accepts connections; concurrent checks share one probe. */
  #probe(): Promise<void> {
    this.#probing ??= this.#pool.probe().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }
}

class PooledTransaction implements Transaction, SqlTarget {
  readonly #lease: Lease;
  readonly #failure: (thrown: unknown) => Promise<ServiceError>;

  /** @param failure converts an error of the connection into that of the call */
  constructor(lease: Lease, failure: (thrown: unknown) => Promise<ServiceError>) {
    this.#lease = lease;
    this.#failure = failure;
  }

  async run(call: DriverCall, wantsRows: boolean): Promise<DriverAnswer> {
    this.#requireOpen();
    const statement = prepare(call, wantsRows, true);
    try {
      return await this.#lease.run(statement, call);
    } catch (thrown) {
      throw await this.#failure(thrown);
    }
  }

  async commit(call: DriverCall): Promise<void> {
    if (this.#lease.transactionFailure) this.#lease.release();
    this.#requireOpen();
    const done = await this.#end('COMMIT', call);
    if (done === 'COMMIT') return;
    throw new ServiceError(
      'backend',
      'the transaction was rolled back, because a statement in it has failed',
    );
  }

  async rollback(): Promise<void> {
    if (this.#lease.isOver) return;
    const timeout = setTimeout(() => this.#lease.destroy(), ROLLBACK_TIMEOUT_MS);
    // On failure the connection is closed, which also rolls back.
    await this.#end('ROLLBACK', undefined).catch(() => undefined);
    clearTimeout(timeout);
  }

  #requireOpen(): void {
    if (this.#lease.transactionFailure) throw this.#lease.transactionFailure;
    if (!this.#lease.isOver) return;
    const message = 'the transaction has ended: a call in it was aborted or answered too much';
    throw new ServiceError('invalid', message);
  }

  /** @param call its abort closes the connection; the outcome of a commit is then unknown */
  async #end(sql: 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    try {
      const done = await this.#lease.control(sql, call);
      this.#lease.release();
      return done;
    } catch (thrown) {
      this.#lease.destroy();
      throw await this.#failure(thrown);
    }
  }
}

/** @throws ServiceError `invalid` */
function prepare({ payload }: DriverCall, wantsRows: boolean, inTransaction: boolean): PreparedCall {
  const statement = parseStatement(payload);
  checkStatement(statement, inTransaction);
  const { sql, params } = statement;
  if (params.length > MAX_PARAMS) {
    throw new ServiceError('invalid', `a statement can have ${MAX_PARAMS} parameters at most`);
  }
  return { sql, params, wantsRows };
}
