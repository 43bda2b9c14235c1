/**
 * Refuses statements that would change the state of a connection, because all handlers of a service share connections:
 * transaction control, which has its own operations, and session settings, which would outlive the call. This prevents
 * accidents only: functions and procedures can have the same effects, so drivers also check the session state.
 */
import { ServiceError } from '../service-error.js';
import type { ScannedSql, SqlDialect } from './placeholders.js';

const TRANSACTION = 'use a transaction: begin, commit and rollback are operations of their own';
const SESSION = 'it would change a connection that others use, too';

/** By the first word. */
const REFUSED: Readonly<Record<SqlDialect, Readonly<Record<string, string>>>> = {
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

/** A pragma with an unquoted name at the start of the text. */
const PRAGMA = /^[ \t\r\n]*PRAGMA[ \t\r\n]+(?:(?:main|temp)\s*\.\s*)?(\w+)/i;

/** Allowed pragmas of SQLite: those that return information or change only the content of the file. */
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
 * Refuses statements that would affect other calls.
 * @throws ServiceError `invalid` saying why
 */
export function refuseStateChange(scanned: ScannedSql, dialect: SqlDialect, inTransaction: boolean): void {
  const [first = ''] = scanned.words;
  if (scanned.hasExecutableComment)
    throw refused('/*! ... */', 'what of it is executed depends on the server');
  const savepoint = first === 'SAVEPOINT' || first === 'RELEASE' || isRollbackToSavepoint(scanned);
  if (savepoint) {
    if (!inTransaction) throw refused(first, TRANSACTION);
    return;
  }
  if (dialect === 'sqlite') refuseFileEscape(scanned);
  const reason = REFUSED[dialect][first];
  if (reason !== undefined) throw refused(first, reason);
}

/** SQLite: refuses statements that write other files or change the connection. */
function refuseFileEscape({ sql, words }: ScannedSql): void {
  const [first = '', second = '', third = ''] = words;
  if (first === 'VACUUM' && (second === 'INTO' || third === 'INTO')) {
    throw refused('VACUUM INTO', 'a service is one file');
  }
  // Some pragmas take effect even under EXPLAIN.
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
