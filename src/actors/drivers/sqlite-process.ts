/**
 * The process that has the file of one sqlite service open; `sqlite-channel.ts` starts it. A process and not a thread,
 * because SQLite cannot be interrupted here: a statement that runs over its deadline ends with the process it runs in.
 */
import Sqlite from 'better-sqlite3';
import { toError } from '../../errors.js';
import { startParentWatchdog } from '../../parent-watchdog.js';
import { ServiceError } from '../service-error.js';
import { parseStatement } from '../sql/statement.js';
import { SqliteDatabase, type SqliteResult } from './sqlite-database.js';
import type { Answer, OpenRequest, Operation, Request } from './sqlite-messages.js';

/** Answers are sent together, but none waits longer than this for statements that come after it. */
const FLUSH_MS = 20;

class Server {
  private readonly database: SqliteDatabase;
  private opened: SqliteDatabase | undefined;

  constructor(
    private readonly path: string,
    createIfMissing: boolean,
  ) {
    this.database = new SqliteDatabase(path, createIfMissing ? 'create' : 'write');
  }

  answerAll(requests: readonly Request[]): void {
    this.database.noticeSchema();
    let answers: Answer[] = [];
    let began = performance.now();
    for (const request of requests) {
      answers.push(this.answer(request));
      if (performance.now() - began < FLUSH_MS) continue;
      send(answers);
      answers = [];
      began = performance.now();
    }
    if (answers.length > 0) send(answers);
  }

  close(): void {
    this.opened?.close();
    this.database.close();
  }

  private answer([id, operation, payload]: Request): Answer {
    try {
      const { text, rowsAffected, lastInsertId } = this.run(operation, payload);
      return [id, 'ok', text, rowsAffected, lastInsertId];
    } catch (thrown) {
      const { kind, message } = toServiceError(thrown);
      return [id, kind, message];
    }
  }

  private run(operation: Operation, payload: string): SqliteResult {
    const { database } = this;
    switch (operation) {
      case 'query':
      case 'execute':
        return database.run(parseStatement(payload), operation === 'query', false);
      case 'read':
        return this.reader().run(parseStatement(payload), true, false);
      case 'tx-query':
      case 'tx-execute':
        this.requireTransaction();
        return database.run(parseStatement(payload), operation === 'tx-query', true);
      case 'begin':
        database.control('BEGIN IMMEDIATE');
        return NOTHING;
      case 'commit':
        this.requireTransaction();
        database.control('COMMIT');
        return NOTHING;
      case 'rollback':
        if (database.isInTransaction) database.control('ROLLBACK');
        return NOTHING;
      case 'test':
        database.noticeSchema();
        return { ...NOTHING, text: `SQLite ${database.version()}` };
    }
  }

  /** Another connection, for what need not wait until a transaction ends. */
  private reader(): SqliteDatabase {
    this.opened ??= new SqliteDatabase(this.path, 'read');
    this.opened.noticeSchema();
    return this.opened;
  }

  /** Some errors, like a full disk, make the database roll back by itself. */
  private requireTransaction(): void {
    if (!this.database.isInTransaction) {
      throw new ServiceError(
        'backend',
        'the transaction was rolled back, because a statement in it has failed',
      );
    }
  }
}

const NOTHING: SqliteResult = { text: undefined, rowsAffected: 0, lastInsertId: null };

function send(message: unknown): void {
  process.send?.(message);
}

function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const { message } = toError(thrown);
  if (thrown instanceof Sqlite.SqliteError) {
    const isLost = /^SQLITE_(IOERR|CANTOPEN|NOTADB)/.test(thrown.code);
    return new ServiceError(isLost ? 'unavailable' : 'backend', `${message} (${thrown.code})`);
  }
  // The library refuses several statements in one, and none.
  if (thrown instanceof RangeError || thrown instanceof TypeError)
    return new ServiceError('invalid', message);
  throw thrown;
}

let server: Server | undefined;

startParentWatchdog();

process.on('message', (message: OpenRequest | readonly Request[]) => {
  if (!('path' in message)) {
    server?.answerAll(message);
    return;
  }
  try {
    server = new Server(message.path, message.createIfMissing);
    send({ opened: true });
  } catch (thrown) {
    const { message: reason } = toServiceError(thrown);
    send({ opened: false, reason });
  }
});

// Whoever started it decides when it ends, also when a signal goes to the whole group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => {
  server?.close();
  process.exit(0);
});
