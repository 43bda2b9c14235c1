/** Plans the way back of an apply: the inverse of what it has changed, against what is now. */

import { hashOf } from '../../apply/compare.js';
import { inverseOf } from '../../apply/inverse.js';
import { keyOf } from '../../apply/keys.js';
import type { InstallationObject, Plan } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { openService } from '../../lifecycle/stored-services.js';
import type { Apply } from '../../store/applies.js';
import { readInstallation } from '../../store/installation.js';
import type { Principal } from '../principal.js';
import { requirePermissions } from './permissions.js';
import { existingObjects, type PlanDependencies } from './plan-apply.js';

/**
 * What others have changed since stays, and is a warning.
 * @throws AppError apply_not_committed, forbidden
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
  const now = new Map(existingObjects(stored, services).map(({ object }) => [keyOf(object), object]));
  const inverses = [...apply.changes]
    .reverse()
    .map((change) =>
      inverseOf(change, now.get(keyOf((change.after ?? change.before) as InstallationObject))),
    );
  const changes = inverses.flatMap(({ change }) => change ?? []);
  requirePermissions(principal, changes, stored);
  return {
    stack: apply.stack,
    hash: hashOf(apply.stack, changes),
    changes,
    warnings: inverses.flatMap(({ warnings }) => warnings),
  };
}
