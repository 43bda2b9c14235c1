/**
 * Reads what the database sends with pauses. Rows are parsed as they arrive: of a long answer, that would take all of a
 * turn of the event loop, and of those that follow.
 */
import type { Readable } from 'node:stream';

/** Read in a turn of the event loop, bytes; a socket gives 2 MiB. */
const AT_ONCE = 256 * 1024;

/** @param stream that others read by its event `data` */
export function pauseReads(stream: Readable): void {
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes < AT_ONCE) return;
    bytes = 0;
    stream.pause();
    setImmediate(() => stream.resume());
  });
}
