/** Imports: stores them, enqueues jobs that compile and start the handlers of a bundle, waits for these. */
import { randomUUID } from 'node:crypto';
import { AppError, requireFound } from '../../errors.js';
import type { ImportedApi } from '../../import/imported-api.js';
import { noWorker } from '../../lifecycle/compile.js';
import { requireGateways } from '../../lifecycle/run.js';
import { policyLimit } from '../../model/policies/room.js';
import { applyImport } from '../../store/apply-import.js';
import { type HandlerAttempt, handlersOf } from '../../store/import-handlers.js';
import type { ImportTarget } from '../../store/import-scope.js';
import { findImport, type ImportOutcome, importProgress } from '../../store/imports.js';
import { liveNodes } from '../../store/nodes.js';
import { keepSourceFiles } from '../../store/source-files.js';
import { settleHandlers, unchangedHandlers } from '../../store/unchanged-handlers.js';
import type { Logger } from '../../util/log.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { awaitBindings } from '../services/service-hosts.js';
import { requireCratesOf } from './crates.js';
import { presentResult, presentWarnings } from './imports.present.js';

export interface BundleOptions {
  readonly compile: boolean;
  /** Requires `compile`. */
  readonly start: boolean;
  /** Whether the caller will wait for the jobs, which then needs a live worker, and a gateway for `start`. */
  readonly isAwaited: boolean;
}

/**
 * Stores a bundle in one transaction and enqueues its handlers.
 * @returns the id of the import, which may have ended already
 * @throws AppError no_worker, no_gateway, and the errors of `applyImport`
 */
export async function startBundleImport(
  deps: ApiDependencies,
  target: ImportTarget,
  api: ImportedApi,
  { compile, start, isAwaited }: BundleOptions,
  request: {
    readonly id: string;
    /** Whose turns its handlers take. */
    readonly principal: string;
    readonly log: Logger;
    addAuditDetails(facts: Readonly<Record<string, unknown>>): void;
  },
): Promise<string> {
  const { store } = deps;
  requireCratesOf(api, deps.config);
  const hasJobs = compile && api.endpoints.some(({ handler }) => handler !== null);
  if (hasJobs && isAwaited) {
    if ((await liveNodes(store, 'worker')).length === 0) throw noWorker();
    if (start) await requireGateways(deps);
  }
  const id = randomUUID();
  const record = { id, compile, start, request_id: request.id, principal: request.principal };
  await keepSourceFiles(store, api.contents);
  const { outcome, bound } = await applyImport(store, target, api, record, policyLimit(deps.config));
  request.addAuditDetails(auditedImport(id, target, outcome));
  await awaitBindings(deps, bound);
  if (hasJobs) {
    const settled = start ? await settleUnchanged(deps, id) : new Set<string>();
    const handlers = outcome.endpoints
      .filter((endpoint) => endpoint.handler !== null && !settled.has(endpoint.id))
      .map((endpoint) => ({ importId: id, endpointId: endpoint.id, attempt: 1, endpoint: endpoint.name }));
    if (handlers.length > 0) await enqueue(deps, id, handlers, request);
  }
  return id;
}

/** What the audit tells of an import. */
export function auditedImport(id: string, { domain }: ImportTarget, outcome: ImportOutcome) {
  const { collection, endpoints } = outcome;
  return {
    ...{ import_id: id, domain, collection_id: collection?.id ?? null },
    endpoint_ids: endpoints.map((endpoint) => endpoint.id),
  };
}

/** Settles handlers that are running unchanged and need no jobs. @returns the ids of their endpoints */
async function settleUnchanged({ store, artifacts }: ApiDependencies, id: string): Promise<Set<string>> {
  const candidates = await unchangedHandlers(store, id);
  const isStored = await Promise.all(candidates.map(({ artifact }) => artifacts.has(artifact)));
  const settled = candidates.filter((_, at) => isStored[at]);
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
    // The bundle is stored; the recovery of a worker enqueues its handlers.
    request.log.warn(
      { err: error, import_id: id },
      'an import could not be enqueued; a worker will enqueue it',
    );
  }
}

/**
 * Waits for an import to end.
 * @throws AppError wait_timeout
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
    throw new AppError('wait_timeout', `The import is still running; see /api/imports/${id}.`, {
      details: { import_id: id },
    });
  }
  const imported = requireFound(await findImport(store, id), 'import', id);
  return {
    result: presentResult(imported, await handlersOf(store, id)),
    warnings: presentWarnings(imported.outcome),
  };
}
