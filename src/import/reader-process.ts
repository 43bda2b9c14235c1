/**
 * Entry of the child process that parses documents and bundles, one at a time; `reader-child.ts` starts it. The input
 * is untrusted: if it takes too much time or memory, only this process is killed.
 */
import { AppError, toError } from '../errors.js';
import type { ImportedEndpoint } from '../model/imported-parts.js';
import { startParentWatchdog } from '../util/parent-watchdog.js';
import { checkApi, codeLength } from './check-api.js';
import { inParts } from './folder/parts.js';
import type { ReadRequest } from './read-request.js';
import type { ReadAnswer, ReadJob } from './reader-messages.js';

/** Size of one message: receiving it blocks the event loop of the parent for about a millisecond. */
const CHUNK_ENDPOINTS = 50;
const CHUNK_CHARACTERS = 256 * 1024;

process.on('message', (job: ReadJob) => void run(job));
// Only the parent ends this process, even if a signal is sent to the whole process group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => process.exit(0));
startParentWatchdog();

async function run(job: ReadJob): Promise<void> {
  try {
    if (job.kind === 'folder') {
      await runFolder(job);
      return;
    }
    const { fields, api } = await read(job);
    const { endpoints, contents, ...rest } = checkApi(
      api,
      job.kind === 'bundle' ? 'invalid_bundle' : 'invalid_spec',
    );
    for (const part of inParts(contents, ({ length }) => length))
      await send({ type: 'contents', contents: part });
    for (const chunk of chunksOf(endpoints)) await send({ type: 'endpoints', endpoints: chunk });
    await send({ type: 'end', fields, api: rest, memoryMb: memoryMb() });
  } catch (thrown) {
    if (thrown instanceof AppError) {
      await send({
        type: 'invalid',
        code: thrown.code,
        message: thrown.message,
        details: thrown.extras.details,
      });
    } else {
      const error = toError(thrown);
      await send({ type: 'failed', stack: error.stack ?? error.message });
    }
  }
}

async function runFolder({ file, folder, limits }: ReadJob): Promise<void> {
  const [{ readFolder }, { partsOf }] = await Promise.all([
    import('./folder/read-folder.js'),
    import('./folder/parts.js'),
  ]);
  const read = await readFolder({ file, isZip: false, environment: null, ...folder }, limits);
  for (const part of partsOf(read)) await send({ type: 'part', part });
  await send({ type: 'folder-end', memoryMb: memoryMb() });
}

function memoryMb(): number {
  return Math.round(process.memoryUsage.rss() / 1024 ** 2);
}

async function read({ kind, file, limits, validation }: ReadJob): Promise<ReadRequest> {
  // Loading an unneeded module takes as long as parsing a small document.
  if (kind === 'request')
    return await (await import('./read-request.js')).readRequest(file, limits, validation);
  const { readBundle } = await import('./bundle/read-bundle.js');
  return { fields: {}, api: await readBundle(file, limits, validation) };
}

function* chunksOf(endpoints: readonly ImportedEndpoint[]): Generator<readonly ImportedEndpoint[]> {
  let chunk: ImportedEndpoint[] = [];
  let characters = 0;
  for (const endpoint of endpoints) {
    chunk.push(endpoint);
    characters += codeLength(endpoint);
    if (chunk.length < CHUNK_ENDPOINTS && characters < CHUNK_CHARACTERS) continue;
    yield chunk;
    chunk = [];
    characters = 0;
  }
  if (chunk.length > 0) yield chunk;
}

/** Resolves when the message has been written to the pipe: backpressure, so that messages do not pile up in memory. */
function send(message: ReadAnswer): Promise<void> {
  return new Promise((resolve) => {
    // Without a channel, the parent is gone and this process exits.
    process.send?.(message, undefined, undefined, () => resolve());
  });
}
