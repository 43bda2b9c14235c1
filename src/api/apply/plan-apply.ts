/**
 * Plans an apply: reads the installation, compares it with a folder, and checks all that would change, so that a plan
 * that is made can be carried out.
 */
import type { PlannedChanges, StoredObject } from '../../apply/changes.js';
import { plannedChanges } from '../../apply/changes.js';
import { hashOf } from '../../apply/compare.js';
import { nameOf, titleOf } from '../../apply/keys.js';
import type { InstallationObject, Plan } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { folderError } from '../../import/folder/errors.js';
import type { Folder } from '../../import/folder/folder.js';
import { type OpenedService, openService } from '../../lifecycle/stored-services.js';
import { readInstallation, type StoredInstallation } from '../../store/installation.js';
import { mapInParts } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { AnswerTurns } from '../response/answer-turns.js';
import { checkChanges } from './checks.js';
import { declaredObjects } from './declared-objects.js';
import { isOwn, requirePermissions, requireReadable, requireWithin } from './permissions.js';

export interface ApplyOptions {
  /** Whether objects of the stack that the folder does not have are removed. */
  readonly prune: boolean;
  /** Whether objects of the folder that nobody owns become the stack's. */
  readonly adopt: boolean;
}

export type PlanDependencies = Pick<ApiDependencies, 'store' | 'config' | 'log' | 'secrets' | 'threads'>;

/** A plan has all code of the installation in memory, and a connection to the database while that is read. */
export const PLAN_TURNS = new AnswerTurns({ what: 'plans', places: 1, beyond: 2 });

/** So many objects are named in a warning. */
const NAMED = 20;

/**
 * What an apply of a folder would do. Nothing is changed.
 * @throws AppError invalid_folder, apply_conflict, both with all of it at once; forbidden
 */
export async function planApply(
  deps: PlanDependencies,
  folder: Folder,
  options: ApplyOptions,
  principal: Principal,
): Promise<Plan> {
  const stored = await readInstallation(deps.store);
  const services = await mapInParts(stored.services, (service) => openService(service, deps.secrets));
  const { stack, declared, configs, problems } = await declaredObjects(folder, {
    collections: stored.collections.map(({ object }) => object),
    services: services.filter(({ object }) => isOwn(object, principal) || !isHidden(object, principal)),
    secrets: stored.secrets,
  });
  requireReadable(
    principal,
    declared.map(({ object }) => object),
  );
  requireWithin(principal, declared, services, stored);
  const planned = await plannedChanges(existingObjects(stored, services), declared, {
    ...{ stack, ...options },
    mayRemove: (object) => isOwn(object, principal),
  });
  await requirePermissions(principal, planned.changes, stored);
  const checked = await checkChanges(deps, principal, {
    ...{ changes: planned.changes, declared, configs, stored, services },
  });
  const all = [...problems, ...planned.problems, ...checked.problems];
  if (all.length > 0) throw folderError(all);
  requireNoConflicts(planned.conflicts, principal);
  return {
    stack,
    hash: await hashOf(stack, planned.changes),
    changes: planned.changes,
    warnings: [
      ...checked.warnings,
      ...lostSecrets(planned.changes, stored),
      ...keptWarnings(planned.kept, principal),
    ],
  };
}

/** No field of a plan has secrets: what goes with an object is told by its names. */
function lostSecrets(
  changes: PlannedChanges['changes'],
  { ownSecrets }: Pick<StoredInstallation, 'ownSecrets'>,
): string[] {
  return changes.flatMap(({ action, id, before }) => {
    const names = (action === 'delete' && ownSecrets.get(id ?? '')) || [];
    return before && names.length > 0
      ? [`The ${titleOf(before)}: its secrets are removed with it: ${names.join(', ')}`]
      : [];
  });
}

/**
 * The objects that somebody may see.
 * @throws AppError forbidden when a permission is missing to see all of one, secret_key_mismatch
 */
export async function readableObjects(
  deps: Pick<PlanDependencies, 'store' | 'secrets'>,
  principal: Principal,
): Promise<InstallationObject[]> {
  const stored = await readInstallation(deps.store);
  const services = stored.services.filter(({ object }) => !isHidden(object, principal));
  const opened = await mapInParts(services, (service) => openService(service, deps.secrets));
  const objects = existingObjects(stored, opened)
    .map(({ object }) => object)
    .filter((object) => object.kind === 'service' || isOwn(object, principal));
  requireReadable(principal, objects);
  return objects;
}

/** All objects, with what stands for secrets in the configs of services. */
export function existingObjects(
  stored: StoredInstallation,
  services: readonly OpenedService[],
): StoredObject[] {
  return [
    ...services.map(({ id, object }) => ({ id, object })),
    ...stored.domains,
    ...stored.collections,
    ...stored.endpoints,
  ];
}

/** A service that they may not even see. */
function isHidden(object: { readonly domains: readonly string[] }, { scope }: Principal): boolean {
  return (
    scope !== undefined && object.domains.length > 0 && !object.domains.some((host) => scope.includes(host))
  );
}

/** @throws AppError apply_conflict */
export function requireNoConflicts(conflicts: PlannedChanges['conflicts'], principal: Principal): void {
  if (conflicts.length === 0) return;
  const shown = conflicts.map(({ object, message }) =>
    principal.scope && !isOwn(object, principal)
      ? { kind: object.kind, name: null, message: 'An object that you may not see is in the way' }
      : { kind: object.kind, name: nameOf(object), message },
  );
  throw new AppError('apply_conflict', shown.map(({ message }) => message).join('\n'), {
    details: { conflicts: shown },
  });
}

function keptWarnings(kept: readonly InstallationObject[], principal: Principal): string[] {
  const own = kept.filter((object) => isOwn(object, principal));
  if (own.length === 0) return [];
  const named = own.slice(0, NAMED).map(titleOf).join(', ');
  const more = own.length > NAMED ? ` and ${own.length - NAMED} more` : '';
  return [
    `Of the stack, but not in the folder: ${named}${more}. They stay, unless it is applied with prune.`,
  ];
}
