/**
 * Extended JSON of the mongodb driver. Unlike that of the library, 64 bit integers are exact in both directions, and
 * typed values keep their types.
 */
import { BSON } from 'mongodb';
import { replaceBigIntegers } from '../../exact-integers.js';
import { encodeJson } from '../../exact-json.js';

const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;
/** Length of the smallest 64 bit integer. Longer numbers, which may have millions of digits, are not parsed. */
const LONG_CHARACTERS = 20;

/** Reads Extended JSON, relaxed or canonical. @throws Error */
export function parseExtendedJson(text: string): unknown {
  const exact = replaceBigIntegers(text, (digits) =>
    isLong(digits) ? `{"$numberLong":"${digits}"}` : `{"$numberDouble":"${digits}"}`,
  );
  // Relaxed mode would turn typed numbers into plain ones.
  return BSON.EJSON.parse(exact, { relaxed: false });
}

function isLong(digits: string): boolean {
  if (digits.length > LONG_CHARACTERS) return false;
  const value = BigInt(digits);
  return value >= LONG_MIN && value <= LONG_MAX;
}

/** Writes a value that was read with `promoteLongs: false` as relaxed Extended JSON. */
export function encodeExtendedJson(value: unknown): string {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? encodeJson(value) : `{"$numberDouble":"${value}"}`;
    case 'object':
      return value === null ? 'null' : encodeObject(value);
    default:
      return encodeJson(value);
  }
}

function encodeObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(encodeExtendedJson).join(',')}]`;
  // Checks the class, not a type member, because documents may have any members.
  if (value instanceof BSON.BSONValue) return encodeBson(value);
  if (value instanceof Date) return BSON.EJSON.stringify(value, { relaxed: true });
  return encodeMembers(value);
}

function encodeBson(value: BSON.BSONValue): string {
  // First, because it is by far the most frequent.
  if (value instanceof BSON.ObjectId) return `{"$oid":"${value.toHexString()}"}`;
  if (value instanceof BSON.Timestamp) return BSON.EJSON.stringify(value, { relaxed: true });
  if (value instanceof BSON.Long) return value.toString();
  // These contain other values.
  if (value instanceof BSON.DBRef) {
    const { collection, oid, db, fields } = value;
    return encodeMembers({ $ref: collection, $id: oid, ...(db !== undefined && { $db: db }), ...fields });
  }
  if (value instanceof BSON.Code && value.scope) {
    return encodeMembers({ $code: value.code, $scope: value.scope });
  }
  return BSON.EJSON.stringify(value, { relaxed: true });
}

function encodeMembers(value: object): string {
  let text = '{';
  for (const [name, member] of Object.entries(value)) {
    text += `${text.length > 1 ? ',' : ''}${JSON.stringify(name)}:${encodeExtendedJson(member)}`;
  }
  return `${text}}`;
}
