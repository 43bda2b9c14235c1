/**
 * Extended JSON as the mongodb driver reads and writes it. Unlike that of the library: integers of 64 bits are exact in
 * both directions, and what comes with its type keeps it.
 */
import { BSON } from 'mongodb';
import { replaceBigIntegers } from '../exact-integers.js';
import { encodeJson } from '../exact-json.js';

const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;
/** Of the smallest one, with its sign. No more are looked at: a number may have millions. */
const LONG_CHARACTERS = 20;

/** Reads Extended JSON, relaxed or canonical. @throws Error */
export function parseExtendedJson(text: string): unknown {
  const exact = replaceBigIntegers(text, (digits) =>
    isLong(digits) ? `{"$numberLong":"${digits}"}` : `{"$numberDouble":"${digits}"}`,
  );
  // Its relaxed mode makes plain numbers of what came with a type.
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
  // Not by a member that names the type: documents may have any members.
  if (value instanceof BSON.BSONValue) return encodeBson(value);
  if (value instanceof Date) return BSON.EJSON.stringify(value, { relaxed: true });
  return encodeMembers(value);
}

function encodeBson(value: BSON.BSONValue): string {
  // By far the most frequent one.
  if (value instanceof BSON.ObjectId) return `{"$oid":"${value.toHexString()}"}`;
  if (value instanceof BSON.Timestamp) return BSON.EJSON.stringify(value, { relaxed: true });
  if (value instanceof BSON.Long) return value.toString();
  // These hold values of their own.
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
