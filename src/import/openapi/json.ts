/** Access to untrusted JSON values, and error messages that quote them. */
import { AppError } from '../../errors.js';
import { isObject, type JsonObject } from '../../util/json-object.js';

/** An own member of an object, never an inherited one such as `constructor`. */
export function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The entries of an object; empty for any other value. */
export function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

/** The items of an array; empty for any other value. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The JSON pointer of a path of keys, truncated for messages; `/` for the whole document. */
export function pointerOf(path: readonly string[]): string {
  const keys = path.map((key) => shortened(key).replaceAll('~', '~0').replaceAll('/', '~1'));
  const pointer = `/${keys.join('/')}`;
  return pointer.length > 500 ? `${pointer.slice(0, 500)}…` : pointer;
}

/** Text of the document for a message: truncated, on one line. */
export function shortened(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Surrogate}]/gu, '\ufffd');
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** A part of the document that cannot be read: it is left out with a warning, and the rest is read. */
export class SpecError extends Error {
  override readonly name = 'SpecError';
}

/** Why a part of the document cannot be read. */
export function specError(location: string, message: string, options?: ErrorOptions): SpecError {
  return new SpecError(`${location}: ${message}`, options);
}

/** The error for a document that cannot be imported at all. The caller prefixes the document's name. */
export function documentError(location: string, message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_spec', `${location}: ${message}`, {}, options);
}
