/** Errors of bundles that cannot be imported. */
import { AppError } from '../../errors.js';

/** @param message a sentence about the bundle or one of its files */
export function bundleError(message: string, options?: ErrorOptions): AppError {
  return new AppError('invalid_bundle', message, {}, options);
}

/** An invalid entry of the archive: one line of bounded length, whatever its name. */
export function entryError(name: string, reason: string, options?: ErrorOptions): AppError {
  return bundleError(`The bundle's entry ${quoted(name)} ${reason}.`, options);
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}...` : name);
}
