/**
 * SQLite: one file, opened by a process of its own. Statements run one after the other. A transaction has exclusive
 * access: while it is open, statements that begin with SELECT read the state before it on a second connection, and all
 * others wait until it ends.
 */
import { stat } from 'node:fs/promises';
import { type Connection, defineDriver, openOrClose, type Transaction } from '../../driver.js';
import { type Abortable, type DriverCall, stoppedOnAbort } from '../../driver-call.js';
import type { DriverAnswer } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import { scanSql } from '../../sql/placeholders.js';
import { parseStatement, SQL_OPERATIONS, type SqlTarget } from '../../sql/statement.js';
import { type ChannelResult, SqliteChannel } from './channel.js';
import { resolveDatabasePath } from './path.js';

const DEFAULT_MAX_SIZE_MB = 1024;

/** Concurrent calls; they are queued in the process, and this number keeps it busy. */
const CONCURRENCY = 1_024;

export const sqliteDriver = defineDriver({
  type: 'sqlite',
  concurrency: () => CONCURRENCY,
  connect: async (config, context) => {
    const path = await resolveDatabasePath(config, context.sqliteDir);
    const { create_if_missing: createIfMissing, max_size_mb: maxSizeMb = DEFAULT_MAX_SIZE_MB } = config;
    const sizeMb = await sizeOf(path);
    const channel = new SqliteChannel({ path, createIfMissing, maxSizeMb, sizeMb }, context.onLost);
    await openOrClose(context, channel, () => channel.open(context));
    return new SqliteConnection(channel);
  },
  operations: SQL_OPERATIONS,
});

/** MiB; 0 when there is no file. */
async function sizeOf(path: string): Promise<number> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  return size / 1024 ** 2;
}

/** A call that waits for the end of an open transaction. */
interface Waiting {
  readonly start: () => void;
  readonly reject: (error: ServiceError) => void;
}

class SqliteConnection implements Connection, SqlTarget {
  readonly #channel: SqliteChannel;
  #transactionIsOpen = false;
  readonly #waiting = new Set<Waiting>();

  constructor(channel: SqliteChannel) {
    this.#channel = channel;
  }

  async test(): Promise<string> {
    return (await this.#channel.request('test', '')).text ?? '';
  }

  async run(call: DriverCall, wantsRows: boolean): Promise<DriverAnswer> {
    const payload = call.payload.toString();
    if (this.#transactionIsOpen && wantsRows && isRead(payload)) {
      return toAnswer(await this.#channel.request('read', payload, call));
    }
    // Repeated, because another waiting call may have begun a transaction.
    while (this.#transactionIsOpen) await this.#transactionEnd(call);
    return toAnswer(await this.#channel.request(wantsRows ? 'query' : 'execute', payload, call));
  }

  async begin(call: DriverCall): Promise<Transaction> {
    while (this.#transactionIsOpen) await this.#transactionEnd(call);
    this.#transactionIsOpen = true;
    try {
      await this.#channel.request('begin', '', call);
    } catch (thrown) {
      this.#transactionEnded();
      throw thrown;
    }
    return new SqliteTransaction(this.#channel, () => this.#transactionEnded());
  }

  async close(): Promise<void> {
    const closed = new ServiceError('unavailable', 'the database was closed');
    for (const { reject } of this.#waiting) reject(closed);
    await this.#channel.close();
  }

  /** Waits until the open transaction has ended. */
  #transactionEnd(call: Abortable): Promise<void> {
    let waiting: Waiting | undefined;
    const ended = new Promise<void>((resolve, reject) => {
      waiting = { start: resolve, reject };
      this.#waiting.add(waiting);
    });
    const error = new ServiceError('deadline', 'the call was aborted while another had a transaction open');
    return stoppedOnAbort(
      call,
      () => waiting?.reject(error),
      () => ended,
    ).finally(() => waiting && this.#waiting.delete(waiting));
  }

  #transactionEnded(): void {
    this.#transactionIsOpen = false;
    for (const { start } of this.#waiting) start();
  }
}

class SqliteTransaction implements Transaction, SqlTarget {
  readonly #channel: SqliteChannel;
  readonly #ended: () => void;
  #isOver = false;

  constructor(channel: SqliteChannel, ended: () => void) {
    this.#channel = channel;
    this.#ended = ended;
  }

  async run(call: DriverCall, wantsRows: boolean): Promise<DriverAnswer> {
    this.#requireOpen();
    const operation = wantsRows ? 'tx-query' : 'tx-execute';
    return toAnswer(await this.#channel.request(operation, call.payload.toString(), call));
  }

  async commit(call: DriverCall): Promise<void> {
    this.#requireOpen();
    try {
      await this.#channel.request('commit', '', call);
      this.#end();
    } catch (thrown) {
      await this.rollback();
      throw thrown;
    }
  }

  async rollback(): Promise<void> {
    if (this.#isOver) return;
    // On failure the process has ended, which also rolls back.
    await this.#channel.request('rollback', '').catch(() => undefined);
    this.#end();
  }

  #requireOpen(): void {
    if (this.#isOver) throw new ServiceError('invalid', 'the transaction has ended');
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended();
  }
}

/** SELECT is read-only; WITH may write. */
function isRead(payload: string): boolean {
  return scanSql(parseStatement(payload).sql, 'sqlite').words[0] === 'SELECT';
}

function toAnswer({ text, rowsAffected, lastInsertId }: ChannelResult): DriverAnswer {
  if (text !== undefined) return { payload: text };
  return { result: { rows_affected: rowsAffected, last_insert_id: lastInsertId } };
}
