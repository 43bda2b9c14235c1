/** A transaction on a connection that was taken from a pool for it. */
import type { DriverAnswer, DriverCall, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';

/** A connection that does not roll back within this time is closed instead. */
const ROLLBACK_TIMEOUT_MS = 5_000;

/** What a driver does for it; all but the last two reject with a ServiceError. */
export interface TransactionConnection {
  /** It was given back or closed. */
  isOver(): boolean;
  /** Runs a statement of a handler. */
  call(call: DriverCall): Promise<DriverAnswer>;
  /** Runs a statement of ours. @returns what the server says that it has done */
  control(sql: 'COMMIT' | 'ROLLBACK'): Promise<string>;
  release(): void;
  destroy(): void;
}

export class PooledTransaction implements Transaction {
  constructor(private readonly connection: TransactionConnection) {}

  async call(call: DriverCall): Promise<DriverAnswer> {
    this.requireOpen();
    return this.connection.call(call);
  }

  async commit(): Promise<void> {
    this.requireOpen();
    const done = await this.end('COMMIT');
    if (done === 'COMMIT') return;
    throw new ServiceError(
      'backend',
      'the transaction was rolled back, because a statement in it has failed',
    );
  }

  async rollback(): Promise<void> {
    if (this.connection.isOver()) return;
    const timeout = setTimeout(() => this.connection.destroy(), ROLLBACK_TIMEOUT_MS);
    // When it fails the connection is closed, which has the same effect.
    await this.end('ROLLBACK').catch(() => undefined);
    clearTimeout(timeout);
  }

  private requireOpen(): void {
    if (!this.connection.isOver()) return;
    const message = 'the transaction has ended: a call in it was given up or answered too much';
    throw new ServiceError('invalid', message);
  }

  private async end(sql: 'COMMIT' | 'ROLLBACK'): Promise<string> {
    try {
      const done = await this.connection.control(sql);
      this.connection.release();
      return done;
    } catch (thrown) {
      this.connection.destroy();
      throw thrown;
    }
  }
}
