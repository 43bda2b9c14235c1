/** Plans the way back of an apply: the inverse of what it has changed, against what is now. */
import { isDeepStrictEqual } from 'node:util';
import type { Conflict } from '../../apply/changes.js';
import { hashOf } from '../../apply/compare.js';
import { titleOf } from '../../apply/keys.js';
import type { ObjectChange, Plan } from '../../apply/objects.js';
import { wayBackOf } from '../../apply/way-back.js';
import { AppError } from '../../errors.js';
import { changedSecretsWarning, withChangedSecrets } from '../../lifecycle/changed-secrets.js';
import { openService } from '../../lifecycle/stored-services.js';
import { secretsIn } from '../../model/secret-references.js';
import type { Apply } from '../../store/applies.js';
import { savedObjects, servedBefore, writtenConfigs } from '../../store/apply-rows.js';
import { readInstallation, type StoredInstallation } from '../../store/installation.js';
import type { Principal } from '../principal.js';
import { requirePermissions } from './permissions.js';
import { existingObjects, type PlanDependencies, requireNoConflicts } from './plan-apply.js';

/**
 * What others have changed since stays, and is a warning.
 * @throws AppError apply_not_committed, forbidden; apply_conflict when something of others would go with it, or move
 */
export async function planRollback(
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
  const services = stored.services.map((service) => openService(service, deps.secrets));
  const served = await servedBefore(deps.store, apply.id);
  const { changes, warnings, blocked } = wayBackOf(apply.changes, existingObjects(stored, services), {
    stack: apply.stack,
    canServe: (id) => served.has(id),
  });
  requirePermissions(principal, changes, stored);
  requireNoConflicts([...blocked, ...withoutSecrets(changes, stored)], principal);
  return {
    stack: apply.stack,
    hash: hashOf(apply.stack, changes),
    changes,
    warnings: [...warnings, ...(await changedSecrets(deps, apply, changes, stored))],
  };
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

/** Secrets that others have changed since are no fields of a plan; they stay. */
async function changedSecrets(
  { store, secrets }: PlanDependencies,
  apply: Apply,
  changes: readonly ObjectChange[],
  { services }: StoredInstallation,
): Promise<string[]> {
  const [saved, written] = [
    await savedObjects(store, apply.id, 'service'),
    await writtenConfigs(store, apply.id),
  ];
  return changes.flatMap(({ id, before, after }) => {
    if (id === null || before?.kind !== 'service' || after?.kind !== 'service') return [];
    if (isDeepStrictEqual(before.config, after.config)) return [];
    const [beforeApply, afterApply] = [saved.get(id)?.sealed, written.get(id)];
    const now = services.find((one) => one.id === id)?.object.config_encrypted;
    if (!beforeApply || !afterApply || now === undefined) return [];
    const { name, service_type } = before;
    const { places } = withChangedSecrets(
      { id, name, service_type },
      { beforeApply, afterApply, now },
      secrets,
    );
    return places.length > 0 ? [changedSecretsWarning(name, places)] : [];
  });
}
