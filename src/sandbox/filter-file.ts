/** The filter of system calls as bubblewrap reads it: from a file that is open. */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class FilterFile {
  readonly #fd: number;

  /** Keeps the bytes in a file without a name, for the life of this process. */
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

  /** A file descriptor that reads from the beginning, whatever others have read; who asks for it closes it. */
  open(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, 'r');
  }

  close(): void {
    closeSync(this.#fd);
  }
}
