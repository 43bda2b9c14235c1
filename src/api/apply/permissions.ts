/** Who may apply what: the permission of each object that changes, and only what is of one's own hosts. */
import type { DeclaredObject } from '../../apply/changes.js';
import { collectionKey, domainKey, keyOf, titleOf } from '../../apply/keys.js';
import type { InstallationObject, ObjectChange, ServiceObject } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import type { OpenedService } from '../../lifecycle/stored-services.js';
import type { Permission } from '../../model/permission.js';
import { SOURCE_MEMBERS } from '../../model/source-files.js';
import type { StoredInstallation } from '../../store/installation.js';
import type { ObjectTraits } from '../../store/shown-applies.js';
import { Pauses } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';

const KINDS = {
  domain: 'domains',
  collection: 'collections',
  endpoint: 'endpoints',
  service: 'services',
} as const;

/** Plans and exports show these objects. @throws AppError forbidden */
export function requireReadable(principal: Principal, objects: readonly InstallationObject[]): void {
  for (const object of objects)
    for (const permission of readPermissions(object)) requirePermission(principal, permission, object);
}

/** What somebody needs to see all of an object. */
export function readPermissions(object: InstallationObject): Permission[] {
  return readPermissionsOf({
    kind: object.kind,
    has_variables: object.kind !== 'service' && Object.keys(object.variables).length > 0,
    has_schedules: object.kind === 'endpoint' && object.schedules.length > 0,
  });
}

/** The same of an object of which only these are known. */
export function readPermissionsOf({ kind, has_variables, has_schedules }: ObjectTraits): Permission[] {
  return [
    `${KINDS[kind]}:read`,
    ...(has_variables ? (['variables:read'] as const) : []),
    ...(has_schedules ? (['jobs:read'] as const) : []),
  ];
}

/** @throws AppError forbidden naming the object */
export async function requirePermissions(
  principal: Principal,
  changes: readonly ObjectChange[],
  stored: StoredInstallation,
): Promise<void> {
  const { scope } = principal;
  const others = scope && (await endpointsOfOthers(scope, stored));
  const pauses = new Pauses();
  for (const change of changes) {
    await pauses.here();
    const object = (change.after ?? change.before) as InstallationObject;
    for (const permission of writePermissions(change)) requirePermission(principal, permission, object);
    if (change.before && !isOwn(change.before, principal))
      throw new AppError('forbidden', `The ${titleOf(object)} is shared with others`);
    if (change.after && !isOwn(change.after, principal)) throw notOfYours(change.after, principal);
    if (!others) continue;
    requireUnshared(object, others);
    if (change.action === 'create') requireUnused(object, others);
  }
}

function writePermissions({ action, before, after, fields }: ObjectChange): Permission[] {
  const object = (after ?? before) as InstallationObject;
  const paths = [...new Set(fields.map(({ path }) => path.split('.', 1)[0]))];
  const isNew = action === 'create' || changesCode(paths);
  const isDeployed =
    after?.kind === 'endpoint' &&
    (action === 'create' ? after.running !== false : after.running === true && isNew);
  const isStopped = action === 'update' && paths.includes('running');
  return [
    `${KINDS[object.kind]}:write`,
    // What is there is shown.
    ...(before ? readPermissions(before) : []),
    ...(isDeployed || isStopped ? (['endpoints:deploy'] as const) : []),
    ...(paths.includes('variables') ? (['variables:write'] as const) : []),
    ...(paths.includes('schedules') ? (['jobs:write'] as const) : []),
  ];
}

function changesCode(paths: readonly (string | undefined)[]): boolean {
  return [...SOURCE_MEMBERS, 'running'].some((name) => paths.includes(name));
}

/** Where the endpoints are that somebody may not see, who is limited to some hosts. */
interface EndpointsOfOthers {
  /** Keys of domains and collections with endpoints of other hosts. */
  readonly shared: ReadonlySet<string>;
  /** Keys of the domains of all hosts that have endpoints. */
  readonly used: ReadonlySet<string>;
}

async function endpointsOfOthers(
  scope: readonly string[],
  { endpoints }: StoredInstallation,
): Promise<EndpointsOfOthers> {
  const hosts = new Set(scope);
  const [shared, used] = [new Set<string>(), new Set<string>()];
  const pauses = new Pauses();
  for (const { object } of endpoints) {
    await pauses.here();
    const { host, collection, collection_host } = object;
    used.add(domainKey(host));
    if (hosts.has(host) || collection === null || collection_host === null) continue;
    shared.add(domainKey(collection_host));
    shared.add(collectionKey(collection_host, collection));
  }
  return { shared, used };
}

/** A domain or a collection that has endpoints of others is not changed, as in the API. */
function requireUnshared(object: InstallationObject, { shared }: EndpointsOfOthers): void {
  if (shared.has(keyOf(object)))
    throw new AppError('forbidden', `The ${titleOf(object)} has endpoints of others`);
}

/** With the domain of a host come the endpoints that others have made for it before. */
function requireUnused(object: InstallationObject, { used }: EndpointsOfOthers): void {
  if (object.kind === 'domain' && used.has(keyOf(object)))
    throw new AppError(
      'forbidden',
      `The host of the ${titleOf(object)} has endpoints of others, but no domain`,
    );
}

/**
 * What is of other hosts is not in the folder of somebody who is limited to some.
 * @throws AppError forbidden naming the object
 */
export function requireWithin(
  principal: Principal,
  declared: readonly DeclaredObject[],
  services: readonly OpenedService[],
  stored: StoredInstallation,
): void {
  const { scope } = principal;
  if (!scope) return;
  const unchanged = new Map(services.map((service) => [keyOf(service.object), service.object]));
  const domains = new Set([
    ...stored.domains.map(({ object }) => keyOf(object)),
    ...declared.map(({ object }) => keyOf(object)),
  ]);
  for (const { object } of declared) {
    // One that is shared may be named; whether it changes is found out later.
    if (object.kind === 'service' && unchanged.get(keyOf(object))?.domains.length === 0) continue;
    if (!isOwn(object, principal)) throw notOfYours(object, principal);
    if (object.kind === 'endpoint' && !domains.has(domainKey(object.host)))
      throw new AppError('forbidden', `The ${titleOf(object)} is of a host that has no domain`);
  }
}

function notOfYours(object: InstallationObject, { scope = [] }: Principal): AppError {
  return new AppError('forbidden', `The ${titleOf(object)} is not of your hosts: ${scope.join(', ')}`);
}

/** Whether an object is only of hosts that somebody may change. */
export function isOwn(object: InstallationObject, { scope }: Pick<Principal, 'scope'>): boolean {
  if (!scope) return true;
  if (object.kind === 'service') return isOwnService(object, scope);
  const hosts =
    object.kind === 'endpoint' ? [object.host, object.collection_host ?? object.host] : [object.host];
  return hosts.every((host) => scope.includes(host));
}

function isOwnService({ domains }: ServiceObject, scope: readonly string[]): boolean {
  return domains.length > 0 && domains.every((host) => scope.includes(host));
}

function requirePermission(
  { permissions }: Principal,
  permission: Permission,
  object: InstallationObject,
): void {
  if (!permissions.has(permission))
    throw new AppError('forbidden', `The ${titleOf(object)}: the permission ${permission} is missing`, {
      details: { permission },
    });
}
