/** The import of a bundle: store it, have its handlers compiled and started by jobs, wait for them. */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../errors.js';
import { found } from '../../found.js';
import type { ImportedApi } from '../../import/imported-api.js';
import { noWorker } from '../../lifecycle/compile.js';
import { requireGateways } from '../../lifecycle/run.js';
import type { Logger } from '../../log.js';
import { applyImport } from '../../store/apply-import.js';
import { type HandlerAttempt, handlersOf } from '../../store/import-handlers.js';
import type { ImportTarget } from '../../store/import-scope.js';
import { findImport, importProgress } from '../../store/imports.js';
import { liveNodes } from '../../store/nodes.js';
import { settleHandlers, unchangedHandlers } from '../../store/unchanged-handlers.js';
import type { ApiDependencies } from '../dependencies.js';
import { presentResult } from './present.js';

export interface BundleOptions {
  readonly compile: boolean;
  /** Needs `compile`. */
  readonly start: boolean;
  /** Whether the caller will wait: for nothing, when there is no worker or gateway. */
  readonly isAwaited: boolean;
}

/**
 * Stores what a bundle has brought, and puts its handlers on the queue.
 * @returns the id of the import, which may have ended already
 * @throws AppError no_worker, no_gateway, and whatever keeps the bundle from being stored: then nothing is
 */
export async function startBundleImport(
  deps: ApiDependencies,
  target: ImportTarget,
  api: ImportedApi,
  { compile, start, isAwaited }: BundleOptions,
  request: { readonly id: string; readonly log: Logger },
): Promise<string> {
  const { store } = deps;
  const hasJobs = compile && api.endpoints.some(({ handler }) => handler !== null);
  if (hasJobs && isAwaited) {
    if ((await liveNodes(store, 'worker')).length === 0) throw noWorker();
    if (start) await requireGateways(deps);
  }
  const id = randomUUID();
  const { endpoints } = await applyImport(store, target, api, {
    id,
    compile,
    start,
    request_id: request.id,
  });
  if (hasJobs) {
    const settled = start ? await settleUnchanged(deps, id) : new Set<string>();
    const handlers = endpoints
      .filter((endpoint) => endpoint.handler !== null && !settled.has(endpoint.id))
      .map((endpoint) => ({ importId: id, endpointId: endpoint.id, attempt: 1 }));
    if (handlers.length > 0) await enqueue(deps, id, handlers, request);
  }
  return id;
}

/** Handlers that run already, as they are, need no jobs. @returns the ids of their endpoints */
async function settleUnchanged({ store, artifacts }: ApiDependencies, id: string): Promise<Set<string>> {
  const candidates = await unchangedHandlers(store, id);
  const isKept = await Promise.all(candidates.map(({ artifact }) => artifacts.has(artifact)));
  const settled = candidates.filter((_, at) => isKept[at]);
  await settleHandlers(store, id, settled);
  return new Set(settled.map(({ endpointId }) => endpointId));
}

async function enqueue(
  { queues }: ApiDependencies,
  id: string,
  handlers: readonly HandlerAttempt[],
  request: { readonly id: string; readonly log: Logger },
): Promise<void> {
  try {
    await queues.enqueueImport({ importId: id, requestId: request.id }, handlers);
  } catch (error) {
    // The bundle is stored: a worker finds its handlers and puts them on the queue.
    request.log.warn({ err: error, import_id: id }, 'an import could not be queued; a worker will do so');
  }
}

/**
 * Waits for an import to end.
 * @throws AppError `wait_timeout` when it takes too long
 */
export async function awaitImport(deps: ApiDependencies, id: string) {
  const { changes, store, config, waitsEnd } = deps;
  const read = async () => ((await importProgress(store, id))?.finished_at ? true : undefined);
  const hasEnded = await changes
    .waitFor('import_end', id, config.IMPORT_WAIT_MS, read, waitsEnd)
    .catch((error) => {
      if (waitsEnd.aborted) return undefined;
      throw error;
    });
  if (!hasEnded) {
    throw new AppError('wait_timeout', `The import is still going on; see /api/imports/${id}.`, {
      details: { import_id: id },
    });
  }
  const imported = found(await findImport(store, id), 'import', id);
  return {
    result: presentResult(imported, await handlersOf(store, id)),
    warnings: imported.outcome.warnings,
  };
}
