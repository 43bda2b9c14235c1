/**
 * SQLite: one file, opened by one process of its own. Statements run one after the other. While a transaction is open
 * it has the file to itself: statements that begin with SELECT read what was committed before it, on a second
 * connection, and all others wait until it ends.
 */
import type { Connection, Driver, DriverAnswer, DriverCall, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { scanSql } from '../sql/placeholders.js';
import { parseStatement } from '../sql/statement.js';
import { type ChannelResult, SqliteChannel } from './sqlite-channel.js';
import { resolveDatabasePath } from './sqlite-path.js';

/** Calls wait in the process anyway; this many keep it busy. */
const CONCURRENCY = 1_024;

export const sqliteDriver: Driver<'sqlite'> = {
  type: 'sqlite',
  operations: ['query', 'execute', 'begin', 'commit', 'rollback'],
  concurrency: () => CONCURRENCY,
  connect: async (config, context) => {
    const path = await resolveDatabasePath(config, context.sqliteDir);
    const channel = new SqliteChannel(context.onLost);
    try {
      await channel.open({ path, createIfMissing: config.create_if_missing }, context.signal);
    } catch (thrown) {
      await channel.close();
      throw thrown;
    }
    return new SqliteConnection(channel);
  },
};

/** A call that waits until the transaction of another ends. */
interface Waiting {
  readonly start: () => void;
  readonly reject: (error: ServiceError) => void;
}

class SqliteConnection implements Connection {
  private transactionIsOpen = false;
  private readonly waiting: Waiting[] = [];

  constructor(private readonly channel: SqliteChannel) {}

  async test(): Promise<string> {
    return (await this.channel.request('test', '')).text ?? '';
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    const { operation } = call;
    requireStatement(operation);
    const payload = call.payload.toString();
    if (this.transactionIsOpen && operation === 'query' && isRead(payload)) {
      return toAnswer(await this.channel.request('read', payload, call));
    }
    // Another transaction may have begun first among those that waited.
    while (this.transactionIsOpen) await this.turn(call.signal);
    return toAnswer(await this.channel.request(operation, payload, call));
  }

  async begin(call: DriverCall): Promise<Transaction> {
    while (this.transactionIsOpen) await this.turn(call.signal);
    this.transactionIsOpen = true;
    try {
      await this.channel.request('begin', '', call);
    } catch (thrown) {
      this.transactionEnded();
      throw thrown;
    }
    return new SqliteTransaction(this.channel, () => this.transactionEnded());
  }

  async close(): Promise<void> {
    const closed = new ServiceError('unavailable', 'the database was closed');
    for (const { reject } of this.waiting.splice(0)) reject(closed);
    await this.channel.close();
  }

  /** Waits until no transaction is open. */
  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiting.splice(this.waiting.indexOf(waiting), 1);
        reject(new ServiceError('deadline', 'the call was given up while another had a transaction open'));
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener('abort', abort);
          resolve();
        },
        reject,
      };
      if (signal.aborted) return reject(new ServiceError('deadline', 'the call was given up'));
      signal.addEventListener('abort', abort);
      this.waiting.push(waiting);
    });
  }

  private transactionEnded(): void {
    this.transactionIsOpen = false;
    for (const { start } of this.waiting.splice(0)) start();
  }
}

class SqliteTransaction implements Transaction {
  private isOver = false;

  constructor(
    private readonly channel: SqliteChannel,
    private readonly ended: () => void,
  ) {}

  async call(call: DriverCall): Promise<DriverAnswer> {
    const { operation } = call;
    requireStatement(operation);
    this.requireOpen();
    return toAnswer(await this.channel.request(`tx-${operation}`, call.payload.toString(), call));
  }

  async commit(call: DriverCall): Promise<void> {
    this.requireOpen();
    try {
      await this.channel.request('commit', '', call);
      this.end();
    } catch (thrown) {
      await this.rollback();
      throw thrown;
    }
  }

  async rollback(): Promise<void> {
    if (this.isOver) return;
    // When that is not possible the process has ended, and the transaction with it.
    await this.channel.request('rollback', '').catch(() => undefined);
    this.end();
  }

  private requireOpen(): void {
    if (this.isOver) throw new ServiceError('invalid', 'the transaction has ended');
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.ended();
  }
}

function requireStatement(operation: string): asserts operation is 'query' | 'execute' {
  if (operation !== 'query' && operation !== 'execute') {
    throw new ServiceError('invalid', `sqlite has no operation "${operation}"`);
  }
}

/** SELECT changes nothing; WITH may. */
function isRead(payload: string): boolean {
  return scanSql(parseStatement(payload).sql, 'sqlite').words[0] === 'SELECT';
}

function toAnswer({ text, rowsAffected, lastInsertId }: ChannelResult): DriverAnswer {
  if (text !== undefined) return { payload: text };
  return { result: { rows_affected: rowsAffected, last_insert_id: lastInsertId } };
}
