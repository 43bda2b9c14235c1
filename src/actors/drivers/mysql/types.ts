/** Converts values of MySQL and MariaDB to JSON; the table is in `docs/SERVICE-PROTOCOL.md`. */
import mysql, { type FieldPacket, type TypedParameterValue } from 'mysql2';
import { encodeJson } from '../../exact-json.js';
import { INT64, integerTooLarge, JsonText, type SqlValue } from '../../sql/statement.js';

/**
 * Options for reading values: 64 bit integers, dates and JSON as strings, so that they are exact. The encoders below
 * depend on them.
 */
export const READING = {
  supportBigNumbers: true,
  bigNumberStrings: true,
  dateStrings: true,
  jsonStrings: true,
} as const;

/** Writes a value that is not null as JSON. */
export type Encoder = (value: unknown) => string;

const { Types } = mysql;
const text: Encoder = (value) => JSON.stringify(String(value));
const digits: Encoder = (value) => String(value);
/** `2026-01-31 23:59:59.123456` */
const datetime: Encoder = (value) => `"${String(value).replace(' ', 'T')}"`;
const bit: Encoder = (value) =>
  Buffer.isBuffer(value) ? String(BigInt(`0x${value.toString('hex')}`)) : digits(value);

/** A 32 bit float in the fewest digits that identify it. */
const float: Encoder = (value) => {
  if (typeof value !== 'number') return encodeJson(value);
  for (let precision = 6; precision < 9; precision++) {
    const rounded = Number(value.toPrecision(precision));
    if (Math.fround(rounded) === value) return encodeJson(rounded);
  }
  return encodeJson(value);
};

/** MariaDB accepts some invalid JSON; such a value stays a string. */
const json: Encoder = (value) => {
  const source = String(value);
  try {
    JSON.parse(source);
    return source;
  } catch {
    return JSON.stringify(source);
  }
};

const ENCODERS: ReadonlyMap<number | undefined, Encoder> = new Map([
  ...[Types.TINY, Types.SHORT, Types.INT24, Types.LONG, Types.LONGLONG, Types.YEAR].map(
    (t) => [t, digits] as const,
  ),
  ...[Types.DATETIME, Types.TIMESTAMP].map((t) => [t, datetime] as const),
  ...[Types.DECIMAL, Types.NEWDECIMAL, Types.DATE, Types.NEWDATE, Types.TIME].map((t) => [t, text] as const),
  [Types.FLOAT, float],
  [Types.BIT, bit],
  [Types.JSON, json],
]);

/** The encoder of a column. Strings and bytes share types and differ by character set. */
export function encoderOf(field: FieldPacket): Encoder {
  if (field.extendedFormat === 'json') return json;
  return ENCODERS.get(field.columnType) ?? encodeJson;
}

const UINT64_HIGHEST = 2n ** 64n - 1n;

/**
 * Converts a parameter for the library. Integers are sent as such, because LIMIT does not accept a double.
 * @throws ServiceError `invalid` for an integer beyond 64 bits
 */
export function encodeParam(
  value: SqlValue,
): TypedParameterValue | string | number | boolean | Buffer | null {
  if (value instanceof JsonText) return value.text;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? integer(BigInt(value)) : value;
  return typeof value === 'bigint' ? integer(value) : value;
}

function integer(value: bigint): TypedParameterValue {
  const { BIGINT } = mysql.TypedParameter;
  if (value >= INT64.lowest && value <= INT64.highest) return BIGINT(value);
  if (value > 0n && value <= UINT64_HIGHEST) return BIGINT.unsigned(value);
  throw integerTooLarge(value);
}
