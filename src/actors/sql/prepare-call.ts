/** What a handler's call asks a database with a pool of connections to do: read, checked, and not harmful to others. */
import type { DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { checkParamCount, scanSql } from './placeholders.js';
import { refuseHarmful } from './refused-statements.js';
import { parseStatement, type SqlValue } from './statement.js';

/** The protocols count parameters in 16 bits. */
const MAX_PARAMS = 65_535;

/** A statement as it goes to the server. */
export interface PreparedCall {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  readonly wantsRows: boolean;
}

/** @throws ServiceError `invalid` */
export function prepareCall(
  { operation, payload }: DriverCall,
  dialect: 'postgres' | 'mysql',
  inTransaction: boolean,
): PreparedCall {
  if (operation !== 'query' && operation !== 'execute') {
    throw new ServiceError('invalid', `${dialect} has no operation "${operation}"`);
  }
  const { sql, params } = parseStatement(payload);
  const scanned = scanSql(sql, dialect);
  refuseHarmful(scanned, dialect, inTransaction);
  checkParamCount(scanned, params.length, dialect);
  if (params.length > MAX_PARAMS) {
    throw new ServiceError('invalid', `a statement can have ${MAX_PARAMS} parameters at most`);
  }
  return { sql: scanned.sql, params, wantsRows: operation === 'query' };
}
