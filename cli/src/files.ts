/** Files that arguments name. */
import { readFileSync } from 'node:fs';
import { UsageError } from './errors.js';

/** The content of a file; `-` is stdin. @throws UsageError when it cannot be read */
export function readInput(file: string): Buffer {
  try {
    return readFileSync(file === '-' ? 0 : file);
  } catch (thrown) {
    throw new UsageError(`${file === '-' ? 'stdin' : file} cannot be read: ${(thrown as Error).message}`);
  }
}
