/**
 * A database that is reached over a pool of connections, one per call or transaction. A single connection that breaks
 * is replaced; the link to the database is lost when no new one can be made.
 */
import type { Connection, DriverAnswer, DriverCall, DriverContext, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { PooledTransaction } from './pooled-transaction.js';
import { type PreparedCall, prepareCall } from './prepare-call.js';
import type { Sockets } from './sockets.js';

/** A connection, while a call or a transaction has it. Its methods reject with errors of the library, or a ServiceError. */
export interface Lease {
  /** It was given back or closed. */
  readonly isOver: boolean;
  /** Why the server has ended the transaction by itself, if it has. */
  readonly transactionFailure?: ServiceError | undefined;
  /** @param call whose abort ends the statement, and closes the connection */
  run(statement: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer>;
  /** Runs a statement of ours. @returns what the server says that it has done */
  control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string>;
  /** Gives it back; one that the next call would not find as it should be is closed. */
  release(): void;
  /** Closes it, and ends what it does on the server. */
  destroy(): void;
}

/** The pool of one kind of database. */
export interface SqlPool {
  readonly dialect: 'postgres' | 'mysql';
  /** `host:port` */
  readonly where: string;
  /** A query for the version of the server, and what to make of its value. */
  readonly versionQuery: string;
  version(value: string): string;
  /** Waits for a free connection; calls back once, with a ServiceError or a connection. */
  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void;
  /** Makes a connection outside of the pool, and closes it. @throws ServiceError `unavailable` when that is not possible */
  probe(): Promise<void>;
  /** The error of a call; `unavailable` when its connection is of no more use. */
  callError(thrown: unknown): ServiceError;
  /** Closes idle connections, and takes no more calls. */
  end(): void;
}

export class PooledConnection implements Connection {
  /** Ends the wait of calls that have no connection yet. */
  private readonly waiting = new Set<() => void>();
  private readonly pool: SqlPool;
  private probing: Promise<void> | undefined;
  private closed = false;

  /** @param createPool gets what is to be called when a connection breaks */
  constructor(
    createPool: (onBroken: () => void) => SqlPool,
    private readonly sockets: Sockets,
    private readonly context: DriverContext,
  ) {
    this.pool = createPool(() => this.broken());
  }

  /** Opens the first connection. */
  async open(): Promise<void> {
    const { signal } = this.context;
    const abort = () => this.sockets.destroy();
    signal.addEventListener('abort', abort);
    try {
      if (signal.aborted) throw new ServiceError('unavailable', `${this.pool.where} did not answer in time`);
      await this.test();
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async test(): Promise<string> {
    const { versionQuery } = this.pool;
    const { payload } = await this.run({ sql: versionQuery, params: [], wantsRows: true }, undefined);
    const { rows } = JSON.parse(String(payload)) as { readonly rows: readonly (readonly unknown[])[] };
    return this.pool.version(String(rows[0]?.[0]));
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    return this.run(prepareCall(call, this.pool.dialect, false), call);
  }

  async begin(call: DriverCall): Promise<Transaction> {
    const lease = await this.acquire();
    try {
      await lease.control('BEGIN', call);
    } catch (thrown) {
      lease.destroy();
      throw await this.failure(thrown, lease);
    }
    return new PooledTransaction(lease, {
      prepare: (inside) => prepareCall(inside, this.pool.dialect, true),
      failure: (thrown) => this.failure(thrown, lease),
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const giveUp of this.waiting) giveUp();
    // Says goodbye to the server on idle connections. What it waits for, calls that are stuck, ends with the sockets.
    this.pool.end();
    await this.sockets.close();
  }

  private async run(statement: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    const lease = await this.acquire();
    try {
      return await lease.run(statement, call);
    } catch (thrown) {
      throw await this.failure(thrown, lease);
    } finally {
      lease.release();
    }
  }

  /** Waits for a free connection. */
  private acquire(): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(new ServiceError('unavailable', `the connection to ${this.pool.where} is closed`));
      if (this.closed) return giveUp();
      this.waiting.add(giveUp);
      this.pool.take((error, lease) => {
        this.waiting.delete(giveUp);
        if (!lease) return reject(error);
        if (!this.closed) return resolve(lease);
        lease.destroy();
        giveUp();
      });
    });
  }

  /** What a failed call is answered. It is not `unavailable` when just its own connection broke. */
  private async failure(thrown: unknown, lease: Lease): Promise<ServiceError> {
    const error = this.pool.callError(thrown);
    if (error.kind !== 'unavailable') return error;
    lease.destroy();
    if (this.sockets.isClosed) return error;
    try {
      await this.probe();
    } catch (reason) {
      return this.pool.callError(reason);
    }
    return new ServiceError(
      'backend',
      `the connection broke during the call, and whether the call was done is not known: ${error.message}`,
      { cause: thrown },
    );
  }

  /** A connection broke, maybe one that nobody was using: the pool has removed it. */
  private broken(): void {
    if (this.closed) return;
    this.probe().catch((thrown: unknown) => {
      if (!this.closed) this.context.onLost(this.pool.callError(thrown));
    });
  }

  /** Whether the server still takes connections; asked once for all that break at the same time. */
  private probe(): Promise<void> {
    this.probing ??= this.pool.probe().finally(() => {
      this.probing = undefined;
    });
    return this.probing;
  }
}
