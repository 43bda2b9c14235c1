/**
 * Refuses statements that would change the state of a connection, because all handlers of a service share connections:
 * transaction control, which has its own operations, and session settings, which would outlive the call. This prevents
 * accidents only: functions and procedures can have the same effects, so drivers also check the session state.
 */
import { ServiceError } from '../service-error.js';
import type { ScannedSql } from './placeholders.js';

const TRANSACTION = 'use a transaction: begin, commit and rollback are operations of their own';
const SESSION = 'it would change a connection that others use, too';

/** Why statements are refused, by their first word. */
const REFUSED: Readonly<Record<string, string>> = {
  ...reasons(['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'XA'], TRANSACTION),
  ...reasons(['SET', 'USE', 'LOCK', 'UNLOCK', 'PREPARE', 'EXECUTE', 'DEALLOCATE'], SESSION),
  ...reasons(['HANDLER', 'FLUSH', 'BACKUP'], SESSION),
  ...reasons(['IF', 'CASE', 'LOOP', 'REPEAT', 'WHILE', 'FOR'], 'put it into a procedure'),
  LOAD: 'it reads files of the server or of this machine',
};

/**
 * Refuses statements that would affect other calls.
 * @throws ServiceError `invalid` saying why
 */
export function refuseStateChange(scanned: ScannedSql, inTransaction: boolean): void {
  const [first = ''] = scanned.words;
  if (scanned.hasExecutableComment)
    throw refused('/*! ... */', 'what of it is executed depends on the server');
  const savepoint = first === 'SAVEPOINT' || first === 'RELEASE' || isRollbackToSavepoint(scanned);
  if (savepoint) {
    if (!inTransaction) throw refused(first, TRANSACTION);
    return;
  }
  const reason = REFUSED[first];
  if (reason !== undefined) throw refused(first, reason);
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
