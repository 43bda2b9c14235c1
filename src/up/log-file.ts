/** The log of `npm run up` on a terminal: all lines of all processes, in a bounded number of files. */
import { closeSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const MAX_BYTES = 10 * 1024 * 1024;
/** `up.log` is the current file, `up.1.log` the previous one. */
const FILES = 5;

export class LogFile {
  readonly path: string;
  readonly #folder: string;
  #fd: number | undefined;
  #bytes = 0;

  /** Begins a new file for each start. */
  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'log');
    this.path = this.#name(0);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#fd = this.#begin();
  }

  /** @throws Error when it cannot be written, for example because the disk is full */
  write(line: string): void {
    if (this.#fd === undefined || this.#bytes > MAX_BYTES) this.#fd = this.#begin();
    this.#bytes += writeSync(this.#fd, `${line}\n`);
  }

  #begin(): number {
    if (this.#fd !== undefined) closeSync(this.#fd);
    for (let index = FILES - 2; index >= 0; index--) {
      if (statSync(this.#name(index), { throwIfNoEntry: false })) {
        renameSync(this.#name(index), this.#name(index + 1));
      }
    }
    this.#bytes = 0;
    return openSync(this.path, 'a', 0o600);
  }

  #name(index: number): string {
    return join(this.#folder, index === 0 ? 'up.log' : `up.${index}.log`);
  }
}
