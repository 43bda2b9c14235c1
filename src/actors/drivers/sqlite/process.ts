/**
 * The process that opens the file of one sqlite service; `channel.ts` starts it. A process instead of a thread, because
 * SQLite cannot be interrupted here: a statement past its deadline is ended by killing its process.
 */
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { toError } from '../../../errors.js';
import { watchParentIfAsked } from '../../../util/parent-watchdog.js';
import { ServiceError } from '../../service-error.js';
import { parseStatement } from '../../sql/statement.js';
import {
  type Answer,
  MEMORY_MB,
  maxFileMb,
  type OpenRequest,
  type Operation,
  type Request,
} from './channel.js';
import { MAX_VALUE_BYTES, SqliteDatabase, type SqliteResult } from './database.js';

/** Answers are sent in batches; maximum delay of an answer by the statements after it. */
const FLUSH_MS = 20;
const FLUSH_CHARACTERS = 4 * 1024 * 1024;

class Server {
  readonly #file: OpenRequest;
  readonly #database: SqliteDatabase;
  #readConnection: SqliteDatabase | undefined;
  #hasFullWal = false;
  #answered = Promise.resolve();

  constructor(file: OpenRequest) {
    this.#file = file;
    this.#database = new SqliteDatabase(file.path, file.createIfMissing ? 'create' : 'write', file.maxSizeMb);
  }

  /** Answers after the requests before have been answered. */
  answerAll(requests: readonly Request[]): void {
    this.#answered = this.#answered.then(() => this.#answerAll(requests));
  }

  async #answerAll(requests: readonly Request[]): Promise<void> {
    this.#database.noticeSchema();
    if (requests.length > 1) this.#database.shareSnapshots();
    let answers: Answer[] = [];
    let characters = 0;
    let began = performance.now();
    for (const request of requests) {
      const answer = this.#answer(request);
      answers.push(answer);
      characters += answer[2]?.length ?? 0;
      const isLarge = characters > FLUSH_CHARACTERS;
      if (!isLarge && performance.now() - began < FLUSH_MS) continue;
      // Otherwise answers that nobody has taken yet would fill the memory.
      if (isLarge) {
        this.#database.endSnapshot();
        await taken(answers);
      } else {
        send(answers);
      }
      answers = [];
      characters = 0;
      began = performance.now();
    }
    this.#database.endSnapshot();
    if (answers.length > 0) send(answers);
  }

  close(): void {
    this.#readConnection?.close();
    this.#database.close();
  }

  #answer([id, operation, payload]: Request): Answer {
    try {
      // Otherwise only a commit does it, and nothing can be committed.
      if (this.#hasFullWal) this.#hasFullWal = !this.#database.checkpoint();
      const { text, rowsAffected, lastInsertId } = this.#run(operation, payload);
      return [id, 'ok', text, rowsAffected, lastInsertId];
    } catch (thrown) {
      const { kind, message } = toServiceError(thrown, this.#file);
      this.#hasFullWal ||= isWalFull(this.#file);
      return [id, kind, message];
    }
  }

  #run(operation: Operation, payload: string): SqliteResult {
    const database = this.#database;
    switch (operation) {
      case 'query':
      case 'execute':
        return database.run(parseStatement(payload), operation === 'query', false);
      case 'read':
        return this.#reader().run(parseStatement(payload), true, false);
      case 'tx-query':
      case 'tx-execute':
        this.#requireTransaction();
        return database.run(parseStatement(payload), operation === 'tx-query', true);
      case 'begin':
        database.control('BEGIN IMMEDIATE');
        return NO_ROWS;
      case 'commit':
        this.#requireTransaction();
        database.control('COMMIT');
        return NO_ROWS;
      case 'rollback':
        if (database.isInTransaction) database.control('ROLLBACK');
        return NO_ROWS;
      case 'test':
        database.noticeSchema();
        return { ...NO_ROWS, text: `SQLite ${database.version()}` };
    }
  }

  /** A second, read-only connection for reads during a transaction. */
  #reader(): SqliteDatabase {
    this.#readConnection ??= new SqliteDatabase(this.#file.path, 'read', this.#file.maxSizeMb);
    this.#readConnection.noticeSchema();
    return this.#readConnection;
  }

  /** Some errors, like a full disk, roll the transaction back. */
  #requireTransaction(): void {
    if (!this.#database.isInTransaction) {
      throw new ServiceError(
        'backend',
        'the transaction was rolled back, because a statement in it has failed',
      );
    }
  }
}

const NO_ROWS: SqliteResult = { text: undefined, rowsAffected: 0, lastInsertId: null };

function send(message: unknown): void {
  process.send?.(message);
}

/** Sends, and resolves when the parent process has taken it, or has ended. */
function taken(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/** Errors of the library; those raised while rows are read have no code. */
interface SqliteError extends Error {
  readonly code?: string;
  readonly sqliteCodeName?: string;
  /** Of the operating system. */
  readonly systemErrno?: number;
}

/** Errors after which the file cannot be used any more. */
const LOST =
  /^(?:Failed to open database|unable to open database file|disk I\/O error|file is not a database)/;

/** What the errors of limits mean. Some have no code, so they are known by their text. */
const LIMITS: ReadonlyMap<string, (file: OpenRequest, error: SqliteError) => ServiceError | undefined> =
  new Map([
    [
      'database or disk is full',
      ({ maxSizeMb }: OpenRequest) =>
        new ServiceError(
          'backend',
          `the file may have ${maxSizeMb} MiB (max_size_mb in the config of the service), or the disk is full`,
        ),
    ],
    [
      'string or blob too big',
      () =>
        new ServiceError(
          'invalid',
          `a value or row is larger than ${MAX_VALUE_BYTES / 1024 ** 2} MiB, the maximum`,
        ),
    ],
    [
      'out of memory',
      () =>
        new ServiceError(
          'backend',
          `the statement needs too much memory: the process may use ${MEMORY_MB} MiB`,
        ),
    ],
    ['disk I/O error', writeFailure],
  ]);

function writeFailure(
  file: OpenRequest,
  { sqliteCodeName, systemErrno }: SqliteError,
): ServiceError | undefined {
  if (isWalFull(file)) {
    const message =
      `the write-ahead log has ${maxFileMb(file)} MiB, the maximum: a large transaction, or another program that ` +
      'reads the file, keeps it from becoming shorter';
    return new ServiceError('backend', message);
  }
  // Without a code, it failed while rows were read: the file itself is read when the statement begins.
  if (systemErrno === constants.errno.EFBIG || sqliteCodeName === undefined) {
    const message = `disk I/O error: a temporary file may have ${maxFileMb(file)} MiB; sort and store less at a time`;
    return new ServiceError('backend', message);
  }
  return undefined;
}

function toServiceError(thrown: unknown, file: OpenRequest): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error: SqliteError = toError(thrown);
  const { message, code, sqliteCodeName } = error;
  const limit = LIMITS.get(message)?.(file, error);
  if (limit) return limit;
  // Refused by the library, not by SQLite.
  if (code !== 'ERR_SQLITE_ERROR') return new ServiceError('invalid', message);
  const named = sqliteCodeName === undefined ? message : `${message} (${sqliteCodeName})`;
  return new ServiceError(LOST.test(message) ? 'unavailable' : 'backend', named);
}

/** Whether the last write has failed at the limit for the size of files. */
function isWalFull(file: OpenRequest): boolean {
  const { size } = statSync(`${file.path}-wal`, { throwIfNoEntry: false }) ?? { size: 0 };
  return size > (maxFileMb(file) - 1) * 1024 ** 2;
}

let server: Server | undefined;

watchParentIfAsked();

process.on('message', (message: OpenRequest | readonly Request[]) => {
  if (!('path' in message)) {
    server?.answerAll(message);
    return;
  }
  try {
    server = new Server(message);
    send({ opened: true });
  } catch (thrown) {
    const { message: reason } = toServiceError(thrown, message);
    send({ opened: false, reason });
  }
});

// Ignored: the parent process ends this one, also when a signal is sent to the whole process group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => {
  server?.close();
  process.exit(0);
});
