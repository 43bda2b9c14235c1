/** What a handler sends to a SQL database: the statement and its parameters, checked. */
import { decodeBase64 } from '../base64.js';
import { ServiceError } from '../service-error.js';

/** JSON text as a parameter: databases with a JSON type take it as such, the others as text. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** A parameter. A `bigint` is an integer that a double cannot hold. */
export type SqlValue = null | boolean | number | bigint | string | Buffer | JsonText;

export interface SqlStatement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** What an integer of 64 bits can hold. */
export const INT64 = { lowest: -(2n ** 63n), highest: 2n ** 63n - 1n } as const;

/** Up to what 64 bits without a sign can hold. */
const INTEGER = /^-?\d{1,20}$/;

/**
 * Reads `{"sql", "params"}`.
 * @throws ServiceError `invalid` naming what is wrong
 */
export function parseStatement(payload: Buffer | string): SqlStatement {
  const { sql, params = [], ...others } = parseObject(payload);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(`"${unknown}" is not known: the members are "sql" and "params"`);
  if (typeof sql !== 'string') throw invalid('"sql" must be a text');
  // The protocols of the databases end texts with this character.
  if (sql.includes('\0')) throw invalid('"sql" must not contain the character U+0000');
  if (!Array.isArray(params)) throw invalid('"params" must be an array');
  return { sql, params: params.map(parseParam) };
}

function parseObject(payload: Buffer | string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString());
  } catch (thrown) {
    throw new ServiceError('invalid', 'the payload must be JSON: {"sql": "...", "params": [...]}', {
      cause: thrown,
    });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('the payload must be an object: {"sql": "...", "params": [...]}');
  }
  return value as Record<string, unknown>;
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
    `parameter ${index + 1} must be null, true, false, a number, a text, ` +
      '{"int": "<integer>"}, {"blob": "<base64>"} or {"json": "<JSON text>"}',
  );
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid', message);
}
