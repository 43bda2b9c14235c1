/** Plans the way back of an apply: the inverse of what it has changed, against what is now. */
import { hashOf } from '../../apply/compare.js';
import type { Plan } from '../../apply/objects.js';
import { wayBackOf } from '../../apply/way-back.js';
import { AppError } from '../../errors.js';
import { openService } from '../../lifecycle/stored-services.js';
import type { Apply } from '../../store/applies.js';
import { servedBefore } from '../../store/apply-rows.js';
import { readInstallation } from '../../store/installation.js';
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
  const deleted = new Set(apply.changes.flatMap(({ id, action }) => (action === 'delete' ? [id] : [])));
  const { changes, warnings, blocked } = wayBackOf(apply.changes, existingObjects(stored, services), {
    stack: apply.stack,
    // What was deleted comes back with its versions.
    canServe: (id) => served.has(id) || deleted.has(id),
  });
  requirePermissions(principal, changes, stored);
  requireNoConflicts(blocked, principal);
  return {
    stack: apply.stack,
    hash: hashOf(apply.stack, changes),
    changes,
    warnings,
  };
}
