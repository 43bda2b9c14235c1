/** Ids that lead nowhere. */
import { AppError } from './errors.js';

/** What was looked for. @throws AppError not_found when there is none */
export function found<T>(value: T | undefined, kind: string, id: string): T {
  if (value === undefined) throw notFound(kind, id);
  return value;
}

export function notFound(kind: string, id: string): AppError {
  return new AppError('not_found', `The ${kind} ${id} does not exist`);
}
