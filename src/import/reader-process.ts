/**
 * The process that reads documents and bundles, one after the other; `reader-child.ts` starts it. What is read comes from
 * strangers and may be made to take for ever, or all memory: then it is this process that ends.
 */
import { AppError, toError } from '../errors.js';
import { startParentWatchdog } from '../parent-watchdog.js';
import { checkedApi, codeLength } from './check-api.js';
import type { ImportedEndpoint } from './imported-api.js';
import type { ReadRequest } from './read-request.js';
import type { ReadAnswer, ReadJob } from './reader-messages.js';

/** One message blocks the event loop of whoever takes it; this many endpoints or characters do for a millisecond. */
const PIECE_ENDPOINTS = 50;
const PIECE_CHARACTERS = 256 * 1024;

process.on('message', (job: ReadJob) => void run(job));
// Whoever started it decides when it ends, also when a signal goes to the whole group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => process.exit(0));
startParentWatchdog();

async function run(job: ReadJob): Promise<void> {
  try {
    const { fields, api } = await read(job);
    const { endpoints, ...rest } = checkedApi(api, job.kind === 'bundle' ? 'invalid_bundle' : 'invalid_spec');
    for (const piece of piecesOf(endpoints)) await send({ type: 'endpoints', endpoints: piece });
    const memoryMb = Math.round(process.memoryUsage.rss() / 1024 ** 2);
    await send({ type: 'end', fields, api: rest, memoryMb });
  } catch (thrown) {
    if (thrown instanceof AppError) {
      await send({ type: 'refused', code: thrown.code, message: thrown.message });
    } else {
      const error = toError(thrown);
      await send({ type: 'failed', stack: error.stack ?? error.message });
    }
  }
}

async function read({ kind, file, limits }: ReadJob): Promise<ReadRequest> {
  // Loading what is not needed would take as long as reading a small document.
  if (kind === 'request') return await (await import('./read-request.js')).readRequest(file, limits);
  const { readBundle } = await import('./bundle/read-bundle.js');
  return { fields: {}, api: await readBundle(file, limits) };
}

function* piecesOf(endpoints: readonly ImportedEndpoint[]): Generator<readonly ImportedEndpoint[]> {
  let piece: ImportedEndpoint[] = [];
  let characters = 0;
  for (const endpoint of endpoints) {
    piece.push(endpoint);
    characters += codeLength(endpoint);
    if (piece.length < PIECE_ENDPOINTS && characters < PIECE_CHARACTERS) continue;
    yield piece;
    piece = [];
    characters = 0;
  }
  if (piece.length > 0) yield piece;
}

/** Resolves when the message is on its way, so that not all of them wait in memory. */
function send(message: ReadAnswer): Promise<void> {
  return new Promise((resolve) => {
    // When nobody listens any more, this process has no work left, and ends.
    process.send?.(message, undefined, undefined, () => resolve());
  });
}
