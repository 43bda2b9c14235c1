/** Starts an apply from its plan, and waits for it. A worker carries it out (`jobs/apply.ts`). */
import { randomUUID } from 'node:crypto';
import { titleOf } from '../../apply/keys.js';
import type { InstallationObject, ObjectChange, Plan } from '../../apply/objects.js';
import { shownPlan } from '../../apply/show-plan.js';
import { AppError, requireFound } from '../../errors.js';
import { noWorker } from '../../lifecycle/compile.js';
import { requireGateways } from '../../lifecycle/run.js';
import type { Origin } from '../../model/actor.js';
import { storedRights } from '../../model/rights.js';
import { type ApplyState, applyProgress } from '../../store/applies.js';
import { insertApply } from '../../store/new-applies.js';
import { liveNodes } from '../../store/nodes.js';
import { findShownApply } from '../../store/shown-applies.js';
import { keepSourceFiles } from '../../store/source-files.js';
import type { Logger } from '../../util/log.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { acceptedHeaders, prefersAsync, Reply } from '../response/reply.js';
import { presentApply, showApply } from './apply.present.js';

/** What of the request it needs. */
export interface ApplyRequest {
  readonly origin: Origin;
  readonly principal: Principal;
  readonly log: Logger;
  readonly header: (name: string) => string | undefined;
  addAuditDetails(facts: Readonly<Record<string, unknown>>): void;
}

/**
 * @param planHash of the plan that is to be carried out
 * @throws AppError plan_changed when the plan is another one by now
 */
export function requireSamePlan(plan: Plan, planHash: string | undefined): void {
  if (planHash === undefined)
    throw new AppError(
      'invalid_input',
      'query.plan_hash: is required: that of the plan, which the same request makes with dry_run=true',
    );
  if (plan.hash === planHash) return;
  throw new AppError(
    'plan_changed',
    'Something has been changed since the plan was made, in the folder or in the installation; nothing was applied. ' +
      'Plan again (dry_run=true), and apply with the plan_hash of that plan.',
    { details: { plan_hash: plan.hash } },
  );
}

export interface HowToApply {
  /** The apply that it rolls back; null: none. */
  readonly rollbackOf: string | null;
  /** Whether it fails rather than wait for others. */
  readonly noWait: boolean;
  /** Contents of files of sources that may not be stored yet, by their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/**
 * Carries out a plan, and waits until it has ended.
 * @throws AppError with the outcome when it has failed or was undone; apply_busy, no_worker, no_gateway
 */
export async function startApply(
  deps: ApiDependencies,
  plan: Plan,
  { rollbackOf, noWait, contents }: HowToApply,
  request: ApplyRequest,
): Promise<Reply> {
  const { store } = deps;
  if ((await liveNodes(store, 'worker')).length === 0) throw noWorker();
  if (plan.changes.some(({ after }) => after?.kind === 'endpoint' && after.running !== false))
    await requireGateways(deps);
  const id = randomUUID();
  const { origin, addAuditDetails } = request;
  await keepSourceFiles(store, contentsOf(plan.changes, contents));
  await insertApply(store, {
    ...{ id, stack: plan.stack, plan_hash: plan.hash, rollback_of: rollbackOf, no_wait: noWait },
    ...{ actor: { ...origin.actor }, rights: storedRights(request.principal), request_id: origin.requestId },
    plan: await shownPlan(plan),
    changes: plan.changes.map((change) => ({ ...change, id: change.id ?? randomUUID() })),
    hosts: hostsOf(plan.changes),
  });
  addAuditDetails({ apply_id: id, stack: plan.stack, plan_hash: plan.hash, ...auditDetailsOf(plan.changes) });
  await enqueue(deps, id, request);
  return prefersAsync(request.header) ? accepted(deps, id, request) : awaitApply(deps, id, request);
}

/** Those of the contents that changes need. */
function contentsOf(
  changes: readonly ObjectChange[],
  contents: ReadonlyMap<string, Uint8Array>,
): ReadonlyMap<string, Uint8Array> {
  const refs = changes.flatMap(({ after }) =>
    after?.kind === 'endpoint'
      ? [...Object.values(after.files ?? {}), ...(after.lock ? [after.lock] : [])]
      : [],
  );
  const digests = new Set(refs.map(({ digest }) => digest));
  return new Map([...contents].filter(([digest]) => digests.has(digest)));
}

/** Most objects of which the audit tells the names. */
const TOLD = 200;

function auditDetailsOf(changes: readonly ObjectChange[]) {
  const names = changes.flatMap(({ action, before, after }) => {
    const object = after ?? before;
    return object ? [`${action} ${titleOf(object)}`] : [];
  });
  return { changes: names.slice(0, TOLD), ...(names.length > TOLD && { more_changes: names.length - TOLD }) };
}

async function enqueue({ queues }: ApiDependencies, applyId: string, { origin, log }: ApplyRequest) {
  try {
    await queues.enqueue('apply', { applyId, attempt: 1, requestId: origin.requestId });
  } catch (error) {
    // The row is there; the recovery of a worker enqueues it.
    log.warn({ err: error, apply_id: applyId }, 'an apply could not be enqueued; a worker will enqueue it');
  }
}

/** Waits for the end; an apply that takes longer goes on. */
async function awaitApply(deps: ApiDependencies, id: string, request: ApplyRequest): Promise<Reply> {
  const { changes, store, config, waitsEnd } = deps;
  const read = async () => ((await applyProgress(store, id))?.finished_at ? true : undefined);
  const hasEnded = await changes
    .waitFor('apply', id, config.APPLY_WAIT_MS, read, waitsEnd)
    .catch((error: unknown) => {
      if (waitsEnd.aborted) return undefined;
      throw error;
    });
  if (!hasEnded) return accepted(deps, id, request);
  const apply = requireFound(await findShownApply(store, id), 'apply', id);
  if (apply.state === 'succeeded')
    return new Reply(200, presentApply(apply, request.principal), {}, apply.outcome?.warnings ?? []);
  const { state, error_code, error, error_details } = apply;
  const how = HOW_IT_ENDED[state] ?? ' Nothing was changed.';
  throw new AppError(error_code ?? 'internal_error', `${error ?? 'The apply has failed.'}${how}`, {
    details: { ...error_details, apply_id: id, state },
  });
}

/** What is there after an apply that has changed something, and did not succeed. */
const HOW_IT_ENDED: Partial<Record<ApplyState, string>> = {
  undone: ' All is as before, but for what its warnings name.',
  not_undone: ' Its changes remain.',
};

async function accepted({ store }: ApiDependencies, id: string, { principal }: ApplyRequest): Promise<Reply> {
  return new Reply(202, await showApply(store, id, principal), acceptedHeaders(`/api/applies/${id}`));
}

/** The hosts that changes concern; `*` for what is not of certain hosts. */
export function hostsOf(changes: readonly ObjectChange[]): string[] {
  const hosts = changes.flatMap(({ before, after }) => [before, after].flatMap(hostsOfObject));
  return [...new Set(hosts)].sort();
}

function hostsOfObject(object: InstallationObject | null): readonly string[] {
  if (!object) return [];
  if (object.kind === 'service') return object.domains.length > 0 ? object.domains : ['*'];
  if (object.kind !== 'endpoint' || object.collection_host === null) return [object.host];
  return [object.host, object.collection_host];
}
