/** The system call filter in an open file, as bubblewrap reads it. */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class FilterFile {
  readonly #fd: number;

  /** Writes the bytes to an unlinked file. */
  constructor(bytes: Buffer) {
    const folder = mkdtempSync(join(tmpdir(), 'edge-gateway-filter-'));
    try {
      const file = join(folder, 'filter');
      writeFileSync(file, bytes);
      this.#fd = openSync(file, 'r');
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** A new file descriptor with its own position. The caller closes it. */
  open(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, 'r');
  }

  close(): void {
    closeSync(this.#fd);
  }
}
