/** A transaction on a connection that was taken from a pool for it. */
import type { DriverAnswer, DriverCall, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Lease } from './pooled-connection.js';
import type { PreparedCall } from './prepare-call.js';

/** A connection that does not roll back within this time is closed instead. */
const ROLLBACK_TIMEOUT_MS = 5_000;

/** What the pool does for it. */
interface TransactionPool {
  /** @throws ServiceError `invalid` */
  prepare(call: DriverCall): PreparedCall;
  /** The error that a call is answered, from that of the connection. */
  failure(thrown: unknown): Promise<ServiceError>;
}

export class PooledTransaction implements Transaction {
  constructor(
    private readonly lease: Lease,
    private readonly pool: TransactionPool,
  ) {}

  async call(call: DriverCall): Promise<DriverAnswer> {
    this.requireOpen();
    const statement = this.pool.prepare(call);
    try {
      return await this.lease.run(statement, call);
    } catch (thrown) {
      throw await this.pool.failure(thrown);
    }
  }

  async commit(call: DriverCall): Promise<void> {
    if (this.lease.transactionFailure) this.lease.release();
    this.requireOpen();
    const done = await this.end('COMMIT', call);
    if (done === 'COMMIT') return;
    throw new ServiceError(
      'backend',
      'the transaction was rolled back, because a statement in it has failed',
    );
  }

  async rollback(): Promise<void> {
    if (this.lease.isOver) return;
    const timeout = setTimeout(() => this.lease.destroy(), ROLLBACK_TIMEOUT_MS);
    // When it fails the connection is closed, which has the same effect.
    await this.end('ROLLBACK', undefined).catch(() => undefined);
    clearTimeout(timeout);
  }

  private requireOpen(): void {
    if (this.lease.transactionFailure) throw this.lease.transactionFailure;
    if (!this.lease.isOver) return;
    const message = 'the transaction has ended: a call in it was given up or answered too much';
    throw new ServiceError('invalid', message);
  }

  /** @param call whose abort closes the connection: whether a commit was done is not known then */
  private async end(sql: 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    try {
      const done = await this.lease.control(sql, call);
      this.lease.release();
      return done;
    } catch (thrown) {
      this.lease.destroy();
      throw await this.pool.failure(thrown);
    }
  }
}
