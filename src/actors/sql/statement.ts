/** Calls of SQL databases: parses and checks `{"sql", "params"}`. */
import type { Connection } from '../driver.js';
import type { DriverCall } from '../driver-call.js';
import { type DriverAnswer, decodeBase64, invalid, NO_ARGS, payloadReader } from '../operations.js';
import { Type } from '../schema.js';
import { ServiceError } from '../service-error.js';
import { checkParamCount, scanSql } from './placeholders.js';
import { refuseStateChange } from './refused-statements.js';

/** A JSON parameter: sent as JSON to databases with such a type, as text to others. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** A parameter. A `bigint` is an integer that a double cannot represent. */
export type SqlValue = null | boolean | number | bigint | string | Buffer | JsonText;

export interface SqlStatement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** A connection or a transaction. */
export interface SqlTarget {
  run(call: DriverCall, wantsRows: boolean): Promise<DriverAnswer>;
}

/** The same for all SQL databases. */
export const SQL_OPERATIONS = {
  query: {
    args: NO_ARGS,
    run: (target: Connection & SqlTarget, _args: object, call: DriverCall) => target.run(call, true),
  },
  execute: {
    args: NO_ARGS,
    run: (target: Connection & SqlTarget, _args: object, call: DriverCall) => target.run(call, false),
  },
} as const;

/** Range of signed 64 bit integers. */
export const INT64 = { lowest: -(2n ** 63n), highest: 2n ** 63n - 1n } as const;

/** Up to the maximum of unsigned 64 bit integers. */
const INTEGER = /^-?\d{1,20}$/;

const readPayload = payloadReader(
  Type.Object(
    {
      // The protocols of the databases end texts with this character.
      sql: Type.String({
        refine: (sql: string) => (sql.includes('\0') ? 'must not have the character U+0000' : undefined),
      }),
      params: Type.Array(Type.Unknown(), { default: [] }),
    },
    { additionalProperties: false },
  ),
);

/** @throws ServiceError `invalid` naming the wrong member */
export function parseStatement(payload: Buffer | string): SqlStatement {
  const { sql, params } = readPayload(payload);
  return { sql, params: params.map(parseParam) };
}

/**
 * Checks a statement of a handler.
 * @throws ServiceError `invalid`
 */
export function checkStatement({ sql, params }: SqlStatement, inTransaction: boolean): void {
  const scanned = scanSql(sql);
  refuseStateChange(scanned, inTransaction);
  checkParamCount(scanned, params.length);
}

/** The error of an integer that the database has no type for. */
export function integerTooLarge(value: bigint): ServiceError {
  return new ServiceError('invalid', `the integer ${value} does not fit in 64 bits`);
}

function parseParam(value: unknown, index: number): SqlValue {
  if (value === null || typeof value !== 'object') return value as null | boolean | number | string;
  const [name, ...others] = Object.keys(value);
  const content: unknown = others.length === 0 && name !== undefined && Reflect.get(value, name);
  if (typeof content === 'string') {
    if (name === 'json') return new JsonText(content);
    if (name === 'int' && INTEGER.test(content)) return BigInt(content);
    const bytes = name === 'blob' ? decodeBase64(content) : undefined;
    if (bytes) return bytes;
  }
  throw invalid(
    `payload.params[${index}]`,
    'must be null, true, false, a number, a text, ' +
      '{"int": "<integer>"}, {"blob": "<base64>"} or {"json": "<JSON text>"}',
  );
}
