/** Finds handlers of imports whose job or worker was lost, and queues them again. */

import { handlerJobId } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import { awaitLiveNodes } from '../src/reconcile/nodes.js';
import type { Store } from '../src/store/database.js';
import {
  finishHandler,
  requeueHandler,
  type UnfinishedHandler,
  unfinishedHandlers,
  unfinishedHandlersOf,
} from '../src/store/import-handlers.js';
import { pruneDocuments } from '../src/store/imported-documents.js';
import { finishImport, finishImports, pruneImports } from '../src/store/imports.js';
import type { Logger } from '../src/util/log.js';
import type { ThisWorker } from './active-jobs.js';

/** Unfinished handlers are checked when they were queued longer ago than this. */
const LOST_AFTER_MS = 5_000;
/** Handlers checked in one run; the others wait for the next one. */
const BATCH_SIZE = 200;
/** A handler that crashes its worker must not be retried without a limit. */
const MAX_ATTEMPTS = 5;
/** Longer than an import that is about to use a document again. */
const KEEP_DOCUMENTS_MS = 24 * 3600 * 1000;
const KEEP_IMPORTS_MS = 30 * 24 * 3600 * 1000;

/**
 * One run: queues handlers again whose worker has ended, whose worker is this one but is not executing them, or whose
 * job was lost; ends imports whose handlers have all ended; deletes old imports, and
 * documents of which no endpoint is any more.
 */
export async function recoverImports(
  store: Store,
  queues: Queues,
  log: Logger,
  { workerId, activeJobs }: ThisWorker,
): Promise<void> {
  for (const handler of await unfinishedHandlersOf(store, workerId)) {
    if (!activeJobs.has(handlerJobId(handler))) await enqueueAgain(store, queues, handler, log);
  }
  const others = (await awaitLiveNodes(store, 'worker')).map(({ id }) => id);
  const workers = [...others, workerId];
  for (const handler of await unfinishedHandlers(store, workers, LOST_AFTER_MS, BATCH_SIZE)) {
    const isLost = handler.isAbandoned || !(await queues.hasJob('handler', handlerJobId(handler)));
    if (isLost) await enqueueAgain(store, queues, handler, log);
  }
  for (const id of await finishImports(store)) log.warn({ import_id: id }, 'import finished late');
  await pruneImports(store, KEEP_IMPORTS_MS);
  await pruneDocuments(store, KEEP_DOCUMENTS_MS);
}

async function enqueueAgain(
  store: Store,
  queues: Queues,
  handler: UnfinishedHandler,
  log: Logger,
): Promise<void> {
  const { importId, endpointId, requestId, attempt, state } = handler;
  const facts = { request_id: requestId, import_id: importId, endpoint_id: endpointId };
  if (attempt >= MAX_ATTEMPTS) {
    const message = `The handler was lost ${attempt} times, with its worker or its job, and is not tried again.`;
    const stage = state === 'starting' ? 'start' : 'compile';
    if (!(await finishHandler(store, handler, { state: 'failed', stage, message }))) return;
    log.error({ ...facts, attempts: attempt }, 'handler failed after too many attempts');
    await finishImport(store, importId);
    return;
  }
  const next = await requeueHandler(store, handler);
  if (!next) return;
  log.warn({ ...facts, attempt: next.attempt }, 'handler was lost and is queued again');
  await queues.enqueue('handler', { ...next, requestId });
}
