/** The transactions of an apply: all changes at once, the settling of what they deployed, and the undoing. */
import { isDeepStrictEqual } from 'node:util';
import { keyOf, titleOf } from '../apply/keys.js';
import type { InstallationObject, ObjectChange } from '../apply/objects.js';
import { planRollback } from '../apply/rollback-plan.js';
import { AppError, type ErrorFacts } from '../errors.js';
import { secretsIn } from '../model/secret-references.js';
import {
  type AnnouncedChanges,
  type Apply,
  advanceApply,
  findApplySummary,
  type WrittenEndpoint,
} from './applies.js';
import type { WriteContext } from './apply-context.js';
import {
  forgetJobs,
  restoreRows,
  restoreRunning,
  savedObjects,
  saveRows,
  saveWrittenConfigs,
  servedBefore,
  TABLE_OF,
} from './apply-rows.js';
import { writeChanges } from './apply-write.js';
import { isLockTimeout, type Store, transaction } from './database.js';
import { confirmDeployment, revertDeployment } from './deployment-outcomes.js';
import { lockSecrets, requireSecrets } from './service-secrets.js';

/** An object of the installation. */
export interface ExistingObject {
  readonly id: string;
  readonly object: InstallationObject;
}

/** Reads what the installation has, by the keys of objects. */
export type ReadObjects = (tx: Store) => Promise<ReadonlyMap<string, ExistingObject>>;

/** Other changes, such as an import, may hold rows for so long. */
const LOCK_TIMEOUT = '30s';

type Context = Omit<WriteContext, 'applyId' | 'origin'>;

/**
 * Writes all changes, or none.
 * @throws AppError plan_changed when something is not as it was planned, apply_busy, or what stands against a write
 * @throws AttemptLost
 */
export async function commitApply(
  store: Store,
  apply: Apply,
  readObjects: ReadObjects,
  context: Context,
): Promise<AnnouncedChanges> {
  const { id, changes } = apply;
  return transaction(store, (outer) =>
    withinLockTimeout(outer, async () => {
      const { tx, announced } = recording(outer);
      await lockObjects(tx, changes);
      requireAsPlanned(changes, await readObjects(tx));
      await saveRows(tx, id, changes);
      const { rollback_of } = apply;
      if (rollback_of === null) await writeChanges(tx, changes, contextOf(apply, context));
      else {
        await requireSecretsOf(tx, changes);
        const served = await servedBefore(tx, rollback_of);
        await writeChanges(tx, asPutBack(changes, false), contextOf(apply, { ...context, served }), () =>
          restoreRows(tx, rollback_of, createdIds(changes), false),
        );
      }
      await saveWrittenConfigs(tx, id, changes);
      const written = await whatWasWritten(tx, apply, announced);
      await advanceApply(tx, apply, 'committing', {
        state: 'converging',
        written,
        isCommitted: true,
        outcome: { ...outcomeOf(changes, written), warnings: [...context.warnings] },
      });
      return written;
    }),
  );
}

/**
 * All that was deployed is confirmed; with that, the apply has succeeded.
 * @param warnings what does not work all the same
 * @throws AttemptLost
 */
export async function settleApply(store: Store, apply: Apply, warnings: readonly string[]): Promise<void> {
  await transaction(store, async (tx) => {
    for (const { id, deployment } of apply.written?.endpoints ?? [])
      if (deployment !== null) await confirmDeployment(tx, id, deployment);
    await forgetJobs(tx, apply.id);
    const outcome =
      (await findApplySummary(tx, apply.id))?.outcome ?? outcomeOf(apply.changes, apply.written);
    await advanceApply(tx, apply, 'converging', {
      state: 'succeeded',
      hasEnded: true,
      outcome: { ...outcome, warnings: [...outcome.warnings, ...warnings] },
    });
  });
}

/**
 * Writes the inverse of all changes. What others have changed since stays as they want it.
 * @returns what is to be waited for
 * @throws AttemptLost
 */
export async function undoApply(
  store: Store,
  apply: Apply,
  failure: ErrorFacts,
  readObjects: ReadObjects,
  context: Omit<Context, 'compiled'>,
): Promise<AnnouncedChanges> {
  return transaction(store, async (outer) => {
    const { tx, announced } = recording(outer);
    await lockObjects(tx, apply.changes);
    const now = await readObjects(tx);
    const rollback = await planRollback(apply.changes, [...now.values()], apply);
    const { changes } = rollback;
    const warnings = [
      ...rollback.warnings,
      ...rollback.blocked.map(({ message }) => `${message}; nothing of that changes`),
    ];
    for (const { id, deployment } of apply.written?.endpoints ?? [])
      if (deployment !== null) await revertDeployment(tx, id, deployment, failure.message);
    await writeChanges(
      tx,
      asPutBack(changes, true).map((change) => withOldSecrets(change, context)),
      contextOf(apply, { ...context, compiled: new Map() }),
      () => restoreRows(tx, apply.id, createdIds(changes), true),
    );
    const stopped = (apply.written?.endpoints ?? []).filter(({ isStopped }) => isStopped);
    await restoreRunning(
      tx,
      apply.id,
      stopped.map(({ id }) => id),
    );
    const written = await whatWasWritten(tx, apply, announced);
    const outcome = apply.outcome ?? outcomeOf(apply.changes, apply.written);
    await advanceApply(tx, apply, 'undoing', {
      written,
      isUndone: true,
      outcome: { ...outcome, warnings: [...outcome.warnings, ...warnings, ...context.warnings] },
    });
    return written;
  });
}

function contextOf({ id, actor, request_id }: Apply, context: Context): WriteContext {
  const origin = { requestId: request_id, actor: (actor ?? { kind: 'internal' }) as never };
  return { ...context, applyId: id, origin };
}

function createdIds(changes: readonly ObjectChange[]): string[] {
  return changes.flatMap(({ action, id }) => (action === 'create' && id !== null ? [id] : []));
}

/**
 * What is put back as rows is written no second time, but for its route, and what it is to serve.
 * @param runs whether it serves already what it served
 */
function asPutBack(changes: readonly ObjectChange[], runs: boolean): ObjectChange[] {
  return changes.map((change) => {
    const { action, after } = change;
    if (action !== 'create' || after === null) return change;
    const before = after.kind === 'endpoint' && !runs ? { ...after, running: false as const } : after;
    return { ...change, before };
  });
}

/** A service that comes back with a secret that was changed since is inactive: it would send it to an older place. */
function withOldSecrets(
  change: ObjectChange,
  { changedSecrets, warnings }: Pick<Context, 'changedSecrets' | 'warnings'>,
): ObjectChange {
  const { action, after } = change;
  if (action !== 'create' || after?.kind !== 'service' || !after.active) return change;
  const changed = secretsIn(after.config).filter((name) => changedSecrets?.().has(name));
  if (changed.length === 0) return change;
  warnings.add(`The ${titleOf(after)}: ${changed.join(', ')} changed since, so it comes back inactive`);
  return { ...change, after: { ...after, active: false } };
}

/** Rows of services that come back name secrets, which may have been deleted since. @throws AppError invalid_config */
async function requireSecretsOf(tx: Store, changes: readonly ObjectChange[]): Promise<void> {
  const names = changes.flatMap(({ action, after }) =>
    action === 'create' && after?.kind === 'service' ? secretsIn(after.config) : [],
  );
  requireSecrets(await lockSecrets(tx, names), names);
}

/** A transaction that notes which rows it announces. */
function recording(outer: Store) {
  const announced = { endpoint: new Set<string>(), service: new Set<string>() };
  const tx: Store = {
    knex: outer.knex,
    announce: (topic, id) => {
      if (topic === 'endpoint' || topic === 'service') announced[topic].add(id);
      outer.announce(topic, id);
    },
  };
  return { tx, announced };
}

async function withinLockTimeout<T>(tx: Store, work: () => Promise<T>): Promise<T> {
  await tx.knex.raw(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
  try {
    return await work();
  } catch (thrown) {
    if (!isLockTimeout(thrown)) throw thrown;
    const text = 'Other changes of the same objects blocked the apply for too long; nothing was changed.';
    throw new AppError('apply_busy', text, {}, { cause: thrown });
  }
}

/** Locks objects in the order in which all others lock them. */
async function lockObjects(tx: Store, changes: readonly ObjectChange[]): Promise<void> {
  const mentioned = changes.flatMap(({ after }) =>
    after?.kind === 'service' ? secretsIn(after.config) : [],
  );
  await lockSecrets(tx, mentioned);
  for (const kind of ['service', 'domain', 'collection', 'endpoint'] as const) {
    const ids = changes.flatMap(({ id, before, after }) =>
      (before ?? after)?.kind === kind && id !== null ? [id] : [],
    );
    if (ids.length > 0)
      await tx.knex(TABLE_OF[kind]).whereRaw('id = ANY(?)', [ids]).orderBy('id').forUpdate().pluck('id');
  }
}

/** @throws AppError plan_changed naming what is different */
function requireAsPlanned(changes: readonly ObjectChange[], now: ReadonlyMap<string, ExistingObject>): void {
  // What moves away, or goes, leaves its key to another one.
  const leaving = new Set(
    changes.flatMap(({ id, before, after }) =>
      before && (!after || keyOf(after) !== keyOf(before)) ? [id] : [],
    ),
  );
  for (const { before, after, id } of changes) {
    const object = (before ?? after) as InstallationObject;
    const current = now.get(keyOf(object));
    const isSame = before
      ? current?.id === id && isDeepStrictEqual(current?.object, before)
      : !current || leaving.has(current.id);
    if (isSame) continue;
    const how = before ? (current ? 'has been changed' : 'is gone') : 'has been made by others';
    const text = `The ${titleOf(object)} ${how} since the plan was made; nothing was changed. Plan again.`;
    throw new AppError('plan_changed', text, { details: { kind: object.kind } });
  }
}

/** Endpoints and services that were announced, and that there still are. */
async function whatWasWritten(
  tx: Store,
  apply: Apply,
  announced: { readonly endpoint: ReadonlySet<string>; readonly service: ReadonlySet<string> },
): Promise<AnnouncedChanges> {
  const before = await savedObjects(tx, apply.id, 'endpoint');
  const endpoints = await tx
    .knex('endpoints')
    .leftJoin('deployments', 'deployments.id', 'desired_deployment_id')
    .whereRaw('endpoints.id = ANY(?)', [[...announced.endpoint]])
    // In the order in which all others lock them.
    .orderBy('endpoints.id')
    .select<AnnouncedRow[]>('endpoints.id', 'endpoints.version', 'endpoints.status', 'apply_id', {
      deployment: 'deployments.id',
    });
  const services = await tx
    .knex('services')
    .whereRaw('id = ANY(?)', [[...announced.service]])
    .select<{ id: string; version: number }[]>('id', 'version');
  return {
    services,
    endpoints: endpoints.map(({ id, version, status, apply_id, deployment }): WrittenEndpoint => {
      const isOwn = apply_id === apply.id;
      const served = before.get(id)?.row['desired_deployment_id'] ?? null;
      return {
        id,
        revision: version,
        deployment: isOwn ? deployment : null,
        isStopped: served !== null && deployment === null,
        wasFailed: !isOwn && status === 'error',
      };
    }),
  };
}

interface AnnouncedRow {
  readonly id: string;
  readonly version: number;
  readonly status: string;
  readonly apply_id: string | null;
  readonly deployment: string | null;
}

function outcomeOf(changes: readonly ObjectChange[], written: AnnouncedChanges | null) {
  const count = (counted: ObjectChange['action']) =>
    changes.filter(({ action }) => action === counted).length;
  const deployed = (written?.endpoints ?? []).filter(({ deployment }) => deployment !== null).length;
  return {
    ...{ created: count('create'), updated: count('update'), deleted: count('delete') },
    ...{ deployed, warnings: [] as string[] },
  };
}
