/** Finds handlers of imports that got lost on the way, and puts them on the queue again. */
import type { Logger } from '../src/log.js';
import { handlerJobId } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import { presentNodes } from '../src/reconcile/present-nodes.js';
import type { Store } from '../src/store/database.js';
import {
  finishHandler,
  requeueHandler,
  type UnfinishedHandler,
  unfinishedHandlers,
  unfinishedHandlersOf,
} from '../src/store/import-handlers.js';
import { finishImport, finishImports, pruneImports } from '../src/store/imports.js';
import type { OwnWork } from './at-work.js';

/** An unfinished handler is looked after once it was queued this long ago. */
const SUSPICIOUS_AFTER_MS = 5_000;
/** Handlers that are looked after at a time; those behind them wait for the next look. */
const LOOK_AT = 200;
/** A handler that takes its worker down with it each time must not do so for ever. */
const MAX_ATTEMPTS = 5;
const KEEP_IMPORTS_MS = 30 * 24 * 3600 * 1000;

/**
 * One look: handlers whose worker is gone, or is this one and does not work on them, handlers whose job is gone, imports
 * that nobody has ended; and old imports are forgotten.
 */
export async function recoverImports(
  store: Store,
  queues: Queues,
  log: Logger,
  { workerId, atWork }: OwnWork,
): Promise<void> {
  for (const handler of await unfinishedHandlersOf(store, workerId)) {
    if (!atWork.has(handlerJobId(handler))) await enqueueAgain(store, queues, handler, log);
  }
  const others = (await presentNodes(store, 'worker')).map(({ id }) => id);
  const workers = [...others, workerId];
  for (const handler of await unfinishedHandlers(store, workers, SUSPICIOUS_AFTER_MS, LOOK_AT)) {
    const isLost = handler.isAbandoned || !(await queues.hasHandlerJob(handler));
    if (isLost) await enqueueAgain(store, queues, handler, log);
  }
  for (const id of await finishImports(store)) log.warn({ import_id: id }, 'import finished late');
  await pruneImports(store, KEEP_IMPORTS_MS);
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
    log.error({ ...facts, attempts: attempt }, 'handler given up');
    await finishImport(store, importId);
    return;
  }
  const next = await requeueHandler(store, handler);
  if (!next) return;
  log.warn({ ...facts, attempt: next.attempt }, 'handler was lost on the way and is queued again');
  await queues.enqueueHandler(next, requestId);
}
