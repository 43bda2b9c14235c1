/**
 * Memory of the parts of large objects, and of the pieces in which they arrive. V8 does not count it as its own: 32 MiB
 * of buffers that nobody needs may wait for the next collection, however small the heap is. So one is made for so many
 * bytes of them.
 */

const COLLECT_BYTES = 8 * 1024 * 1024;

let bytesSince = 0;

/** To be called for each buffer. @param bytes of one that is of no use soon, or is already */
export function collectParts(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < COLLECT_BYTES) return;
  bytesSince = 0;
  // The process of a service has it (`programs.ts`); it takes some milliseconds there.
  globalThis.gc?.();
}
