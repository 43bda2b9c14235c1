/** Looking into documents that came from outside: nothing is known of a value but that it is JSON. */
import { AppError } from '../../errors.js';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member that the object itself has: a document may name a member `constructor`, or leave it out. */
export function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The entries of an object; none when the value is something else. */
export function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

/** The items of an array; none when the value is something else. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The JSON pointer of a place; the whole document is `/`. Long ones are cut: a message has to be readable. */
export function pointerOf(path: readonly string[]): string {
  const keys = path.map((key) => shortened(key).replaceAll('~', '~0').replaceAll('/', '~1'));
  const pointer = `/${keys.join('/')}`;
  return pointer.length > 500 ? `${pointer.slice(0, 500)}…` : pointer;
}

/** Text of the document for a message: short, on one line. */
export function shortened(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Surrogate}]/gu, '\ufffd');
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** The error of a document that cannot be imported. Who reads the document puts its name before the message. */
export function specError(place: string, message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `${place}: ${message}`, {}, options);
}
