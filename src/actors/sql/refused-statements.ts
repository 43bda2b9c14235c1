/**
 * Statements that would change a connection for whoever uses it next: connections are shared by all handlers of a
 * service. Transactions have operations of their own, and settings of a session would outlive the call. This is help
 * against accidents: functions and procedures can do the same unseen, so drivers look at the connection, too.
 */
import { ServiceError } from '../service-error.js';
import type { ScannedSql, SqlDialect } from './placeholders.js';

const TRANSACTION = 'use a transaction: begin, commit and rollback are operations of their own';
const SESSION = 'it would change a connection that others use, too';

/** By the first word. */
const REFUSED: Readonly<Record<SqlDialect, Readonly<Record<string, string>>>> = {
  postgres: {
    ...reasons(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'ABORT'], TRANSACTION),
    ...reasons(
      ['SET', 'RESET', 'DISCARD', 'LISTEN', 'UNLISTEN', 'PREPARE', 'EXECUTE', 'DEALLOCATE'],
      SESSION,
    ),
    COPY: 'it moves data outside of statements; use INSERT and SELECT',
  },
  mysql: {
    ...reasons(['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'XA'], TRANSACTION),
    ...reasons(['SET', 'USE', 'LOCK', 'UNLOCK', 'PREPARE', 'EXECUTE', 'DEALLOCATE'], SESSION),
    ...reasons(['HANDLER', 'FLUSH', 'BACKUP'], SESSION),
    ...reasons(['IF', 'CASE', 'LOOP', 'REPEAT', 'WHILE', 'FOR'], 'put it into a procedure'),
    LOAD: 'it reads files of the server or of this machine',
  },
  sqlite: {
    ...reasons(['BEGIN', 'COMMIT', 'END', 'ROLLBACK'], TRANSACTION),
    ...reasons(['ATTACH', 'DETACH'], 'a service is one file'),
  },
};

/** A pragma whose name is not quoted, with nothing before it. */
const PRAGMA = /^[ \t\r\n]*PRAGMA[ \t\r\n]+(?:(?:main|temp)\s*\.\s*)?(\w+)/i;

/** Those of SQLite that tell something, or change only what is in the file. */
const PRAGMAS = new Set([
  ...[
    'TABLE_INFO',
    'TABLE_XINFO',
    'TABLE_LIST',
    'INDEX_LIST',
    'INDEX_INFO',
    'INDEX_XINFO',
    'FOREIGN_KEY_LIST',
  ],
  ...[
    'FOREIGN_KEY_CHECK',
    'INTEGRITY_CHECK',
    'QUICK_CHECK',
    'COLLATION_LIST',
    'FUNCTION_LIST',
    'MODULE_LIST',
  ],
  ...['COMPILE_OPTIONS', 'PAGE_COUNT', 'FREELIST_COUNT', 'DATA_VERSION', 'SCHEMA_VERSION', 'USER_VERSION'],
  ...['APPLICATION_ID', 'OPTIMIZE'],
]);

/**
 * Refuses what would harm other calls.
 * @throws ServiceError `invalid` saying why
 */
export function refuseHarmful(scanned: ScannedSql, dialect: SqlDialect, inTransaction: boolean): void {
  const [first = '', second = ''] = scanned.words;
  if (scanned.hasExecutableComment)
    throw refused('/*! ... */', 'what of it is executed depends on the server');
  const savepoint = first === 'SAVEPOINT' || first === 'RELEASE' || isRollbackToSavepoint(scanned);
  if (savepoint) {
    if (!inTransaction) throw refused(first, TRANSACTION);
    return;
  }
  if (dialect === 'sqlite') refuseLeavingTheFile(scanned);
  if (
    first === 'SET' &&
    dialect === 'postgres' &&
    inTransaction &&
    ['LOCAL', 'CONSTRAINTS', 'TRANSACTION'].includes(second)
  )
    return;
  const reason = REFUSED[dialect][first];
  if (reason !== undefined) throw refused(first, reason);
}

/** SQLite: what writes other files, or changes how the connection works. */
function refuseLeavingTheFile({ sql, words }: ScannedSql): void {
  const [first = '', second = '', third = ''] = words;
  if (first === 'VACUUM' && (second === 'INTO' || third === 'INTO')) {
    throw refused('VACUUM INTO', 'a service is one file');
  }
  // A pragma may have its effect even when it is only explained.
  if (first !== 'PRAGMA' && !(first === 'EXPLAIN' && words.includes('PRAGMA'))) return;
  const name = PRAGMA.exec(sql)?.[1]?.toUpperCase();
  if (name === undefined || !PRAGMAS.has(name)) throw refused(`PRAGMA ${name ?? ''}`.trim(), SESSION);
}

/** `ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name` */
function isRollbackToSavepoint({ words }: ScannedSql): boolean {
  return words[0] === 'ROLLBACK' && (words[1] === 'TO' || words[2] === 'TO');
}

function reasons(words: readonly string[], reason: string): Record<string, string> {
  return Object.fromEntries(words.map((word) => [word, reason]));
}

function refused(statement: string, reason: string): ServiceError {
  return new ServiceError('invalid', `${statement} is not possible here: ${reason}`);
}
