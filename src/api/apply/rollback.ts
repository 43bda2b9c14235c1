/** Plans the rollback of an apply, and checks that this principal may carry it out. */
import { isDeepStrictEqual } from 'node:util';
import type { Conflict } from '../../apply/changes.js';
import { hashOf } from '../../apply/compare.js';
import { titleOf } from '../../apply/keys.js';
import type { ObjectChange, Plan } from '../../apply/objects.js';
import { planRollback } from '../../apply/rollback-plan.js';
import { AppError } from '../../errors.js';
import { changedSecretsWarning, configToWrite } from '../../lifecycle/changed-secrets.js';
import { openService } from '../../lifecycle/stored-services.js';
import { secretsIn } from '../../model/secret-references.js';
import type { StoredConfig } from '../../model/service-configs.js';
import type { Apply } from '../../store/applies.js';
import { savedObjects, savedVariables, servedBefore, writtenConfigs } from '../../store/apply-rows.js';
import type { Store } from '../../store/database.js';
import { readInstallation, type StoredInstallation } from '../../store/installation.js';
import { mapInParts } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';
import { checkChanges } from './checks.js';
import { requirePermissions } from './permissions.js';
import { existingObjects, type PlanDependencies, requireNoConflicts } from './plan-apply.js';

/**
 * What others have changed since stays, and is a warning. What comes back is checked as if it were sent anew: it may be
 * somebody else who rolls it back, under other settings.
 * @throws AppError apply_not_committed, forbidden; apply_conflict when something of others would go with it, or move,
 *   or when something cannot be as it was
 */
export async function planCheckedRollback(
  deps: PlanDependencies,
  apply: Apply,
  principal: Principal,
): Promise<Plan> {
  if (apply.state !== 'succeeded')
    throw new AppError(
      'apply_not_committed',
      apply.finished_at
        ? `The apply ${apply.id} has changed nothing: it is ${apply.state}.`
        : `The apply ${apply.id} has not ended yet.`,
    );
  const stored = await readInstallation(deps.store);
  const services = await mapInParts(stored.services, (service) => openService(service, deps.secrets));
  const served = await servedBefore(deps.store, apply.id);
  const rollback = await planRollback(apply.changes, existingObjects(stored, services), {
    stack: apply.stack,
    canServe: (id) => served.has(id),
  });
  const { changes, configs, warnings, problems } = await withConfigs(deps, apply, rollback.changes, stored);
  await requirePermissions(principal, changes, stored);
  await requireMayRestoreSecrets(deps.store, apply, changes, principal);
  const checked = await checkChanges(deps, principal, {
    ...{ changes, declared: null, configs, stored, services },
  });
  requireNoConflicts([...rollback.blocked, ...withoutSecrets(changes, stored)], principal);
  const inTheWay = [...problems, ...checked.problems];
  if (inTheWay.length > 0) throw new AppError('apply_conflict', inTheWay.join('\n'));
  return {
    stack: apply.stack,
    hash: await hashOf(apply.stack, changes),
    changes,
    warnings: [...rollback.warnings, ...warnings, ...checked.warnings],
  };
}

/** Domains, collections and endpoints come back with the secrets that they had, which not everybody may set. */
async function requireMayRestoreSecrets(
  store: Store,
  apply: Apply,
  changes: readonly ObjectChange[],
  { permissions }: Principal,
): Promise<void> {
  if (permissions.has('secrets:write')) return;
  const coming = new Map(
    changes.flatMap(({ action, id, after }) =>
      action === 'create' && id !== null && after !== null ? [[id, after] as const] : [],
    ),
  );
  for (const { owner_id, value_encrypted } of await savedVariables(store, apply.id, [...coming.keys()])) {
    const object = coming.get(owner_id);
    if (value_encrypted === null || object === undefined) continue;
    throw new AppError(
      'forbidden',
      `The ${titleOf(object)} comes back with its secrets: the permission secrets:write is missing`,
      { details: { permission: 'secrets:write' } },
    );
  }
}

/** Services that come back, whose secrets were deleted since. */
function withoutSecrets(changes: readonly ObjectChange[], { secrets }: StoredInstallation): Conflict[] {
  return changes.flatMap(({ action, after }) => {
    if (action !== 'create' || after?.kind !== 'service') return [];
    const gone = secretsIn(after.config).filter((name) => !secrets.has(name));
    const message = `The ${titleOf(after)} comes back with secrets that were deleted since; set them first: ${gone.join(', ')}`;
    return gone.length > 0 ? [{ object: after, message }] : [];
  });
}

/** Changes, and the configs that those of services lead to, which have secrets and are in no plan. */
interface WithConfigs {
  readonly changes: readonly ObjectChange[];
  /** Configs by the names of services. */
  readonly configs: ReadonlyMap<string, StoredConfig>;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

/** Secrets that others have changed since are no fields of a plan; they stay. */
async function withConfigs(
  { store, secrets }: PlanDependencies,
  apply: Apply,
  changes: readonly ObjectChange[],
  { services }: StoredInstallation,
): Promise<WithConfigs> {
  const saved = await savedObjects(store, apply.id, 'service');
  const written = await writtenConfigs(store, apply.id);
  const configs = new Map<string, StoredConfig>();
  const warnings: string[] = [];
  const problems: string[] = [];
  const withConfig = (change: ObjectChange): ObjectChange[] => {
    const { id, before, after } = change;
    if (id === null || after?.kind !== 'service') return [change];
    if (before?.kind === 'service' && isDeepStrictEqual(before.config, after.config)) return [change];
    const history = {
      beforeApply: saved.get(id)?.sealed ?? undefined,
      afterApply: written.get(id),
      now: services.find((one) => one.id === id)?.object.config_encrypted,
    };
    try {
      const { config, ...restored } = configToWrite(id, after, history, secrets);
      configs.set(after.name, config);
      if (restored.places.length > 0) warnings.push(changedSecretsWarning(after.name, restored));
      return [change];
    } catch (thrown) {
      if (!(thrown instanceof AppError) || thrown.code !== 'invalid_config') throw thrown;
      problems.push(`The ${titleOf(after)}: ${thrown.message}`);
      return [];
    }
  };
  return { changes: changes.flatMap(withConfig), configs, warnings, problems };
}
