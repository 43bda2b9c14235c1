/** Leaves out what cannot be read. */
import type { Warn } from '../warnings.js';
import { SpecError } from './json.js';

/**
 * The result of reading a part of the document, or none and a warning when that is not possible.
 * @param label the part, for the warning
 */
export function orLeftOut<T>(label: string, warn: Warn, read: () => T): readonly T[] {
  try {
    return [read()];
  } catch (thrown) {
    if (!(thrown instanceof SpecError)) throw thrown;
    const { message } = thrown;
    const reason = message.startsWith(`${label}: `) ? message.slice(label.length + 2) : message;
    warn('left-out', `${label}: left out: ${reason}`);
    return [];
  }
}
