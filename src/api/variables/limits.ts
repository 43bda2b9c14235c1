/** How long values may be. */
import { AppError } from '../../errors.js';

const MAX_VALUE_BYTES = 64 * 1024;

/** @throws AppError invalid_input */
export function requireAccepted(value: string, where: string): void {
  const bytes = Buffer.byteLength(value, 'utf8');
  if (bytes > MAX_VALUE_BYTES)
    throw new AppError('invalid_input', `${where}: has ${bytes} bytes; at most ${MAX_VALUE_BYTES}`);
}
