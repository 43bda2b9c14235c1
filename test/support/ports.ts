/**
 * Free TCP ports. They are below the range from which the kernel takes the ports of outgoing connections, and each
 * mocha worker has a slice of its own, so that nothing else takes a port between this check and its use.
 */
import { createServer } from 'node:net';

// `fetch` and browsers refuse 10080, which an old protocol uses.
const FIRST = 10_100;
const SLICE = 2_500;
const SLICES = 9;

const slice = FIRST + (Number(process.env['MOCHA_WORKER_ID'] ?? 0) % SLICES) * SLICE;
// Other runs on this machine begin elsewhere.
let next = process.pid;

/** A free TCP port of 127.0.0.1. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < SLICE; tries++) {
    const port = slice + (next++ % SLICE);
    if (await isFree(port)) return port;
  }
  throw new Error(`All ports from ${slice} to ${slice + SLICE - 1} are taken`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
