/**
 * Writes the changes of an apply, within its transaction, with the functions that the API uses for one object. Removed
 * endpoints go first, so that others may have their routes; then come services, domains, collections and endpoints,
 * each of which may refer to those before; and last what else is removed.
 */
import { isDeepStrictEqual } from 'node:util';
import { titleOf } from '../apply/keys.js';
import type {
  CollectionObject,
  DomainObject,
  InstallationObject,
  ObjectChange,
  ServiceObject,
} from '../apply/objects.js';
import { AppError } from '../errors.js';
import { joinRoute, RouteSyntaxError } from '../model/route-pattern.js';
import { secretsIn } from '../model/secret-references.js';
import { movedFile } from '../model/sqlite-folders.js';
import { changed, type ObjectWrite, type WriteContext } from './apply-context.js';
import { TABLE_OF } from './apply-rows.js';
import { createCollection, deleteCollection, updateCollection } from './collections.js';
import type { Store } from './database.js';
import { createDomain, deleteDomain, updateDomain } from './domains.js';
import { writeEndpoint } from './endpoint-objects.js';
import { deleteEndpoint } from './endpoints.js';
import { giveUpRoutes, lockEndpointsOfCollections } from './routed-endpoints.js';
import { setActive, setInactive } from './service-activity.js';
import { createService, deleteService, updateService } from './services.js';
import { replaceVariables } from './variables.js';

/**
 * @param putBack puts rows back, which the changes then find: called when routes are free
 * @throws AppError when something does not fit what is there, which nothing in the plan says
 */
export async function writeChanges(
  tx: Store,
  changes: readonly ObjectChange[],
  context: WriteContext,
  putBack: () => Promise<void> = async () => undefined,
): Promise<void> {
  const removed = changes.filter(({ action }) => action === 'delete');
  for (const { id, before } of removed)
    if (before?.kind === 'endpoint' && id !== null) await deleteEndpoint(tx, id);
  await giveUpRoutes(tx, await movedEndpoints(tx, changes));
  await putBack();
  for (const kind of ['service', 'domain', 'collection', 'endpoint'] as const)
    for (const { id, before, after } of changes) {
      if (after?.kind !== kind || id === null) continue;
      const change = { id, before, after } as ObjectWrite<never>;
      await WRITERS[kind](tx, change, context);
      if (before && before.stack !== after.stack)
        await tx.knex(TABLE_OF[kind]).where({ id }).update({ stack: after.stack });
    }
  for (const kind of ['collection', 'domain', 'service'] as const)
    for (const { id, before } of removed)
      if (before?.kind === kind && id !== null) await REMOVERS[kind](tx, id, before);
}

/** The endpoints whose routes may change, or change hands. All of them are written. @throws AppError plan_changed */
async function movedEndpoints(tx: Store, changes: readonly ObjectChange[]): Promise<string[]> {
  const basePaths = new Map<string, string | null>();
  const moved: string[] = [];
  for (const { id, before, after } of changes) {
    if (!before || !after || id === null) continue;
    if (before.kind === 'collection' && after.kind === 'collection') {
      if (before.base_path !== after.base_path) basePaths.set(id, after.base_path);
    } else if (before.kind === 'endpoint' && after.kind === 'endpoint' && before.route !== after.route)
      moved.push(id);
  }
  const along = await lockEndpointsOfCollections(tx, [...basePaths.keys()]);
  const planned = new Set(changes.map(({ id }) => id));
  await requireNotMoved(
    tx,
    along.filter((id) => !planned.has(id)),
    basePaths,
  );
  return [...moved, ...along];
}

/** What the plan does not have, because it was made since, does not move. */
async function requireNotMoved(
  tx: Store,
  ids: readonly string[],
  basePaths: ReadonlyMap<string, string | null>,
): Promise<void> {
  if (ids.length === 0) return;
  const rows = await tx
    .knex('endpoints')
    .whereRaw('id = ANY(?)', [[...ids]])
    .select<{ method: string; domain: string; route: string; path: string; collection_id: string }[]>(
      ...['method', 'domain', 'route', 'path', 'collection_id'],
    );
  for (const { method, domain, route, path, collection_id } of rows) {
    if (routeIn(basePaths.get(collection_id) ?? null, path) === route) continue;
    const name = `${method} ${domain}${route}`;
    throw new AppError(
      'plan_changed',
      `The endpoint "${name}" was made since the plan, and would move with its collection; nothing was changed. Plan again.`,
    );
  }
}

/** Undefined when the two do not make a route. */
function routeIn(basePath: string | null, path: string): string | undefined {
  try {
    return joinRoute(basePath, path);
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return undefined;
    throw thrown;
  }
}

const WRITERS = {
  service: writeService,
  domain: writeDomain,
  collection: writeCollection,
  endpoint: writeEndpoint,
};

const REMOVERS = {
  service: async (tx: Store, id: string, before: InstallationObject) => {
    await requireEmpty(
      before,
      await tx.knex('endpoint_services').where({ service_id: id }).pluck('endpoint_id'),
    );
    await deleteService(tx, id);
  },
  collection: async (tx: Store, id: string, before: InstallationObject) => {
    await requireEmpty(before, await tx.knex('endpoints').where({ collection_id: id }).pluck('id'));
    await deleteCollection(tx, id);
  },
  domain: async (tx: Store, id: string, before: InstallationObject) => {
    const { host } = before as DomainObject;
    const inside = await tx.knex('collections').where({ domain_id: id }).pluck('id');
    await requireEmpty(before, [
      ...inside,
      ...(await tx.knex('endpoints').where({ domain: host }).pluck('id')),
    ]);
    await deleteDomain(tx, id);
  },
};

/** What the plan does not have is not removed with what it is in. */
async function requireEmpty(object: InstallationObject, inside: readonly unknown[]): Promise<void> {
  if (inside.length === 0) return;
  throw new AppError(
    'plan_changed',
    `The ${titleOf(object)} would be removed, and has something that the plan does not remove. Plan again.`,
  );
}

async function writeService(
  tx: Store,
  { id, before, after }: ObjectWrite<ServiceObject>,
  context: WriteContext,
): Promise<void> {
  const { name, service_type, enabled, domains, stack } = after;
  if (!before) {
    const { sealed: config_encrypted, secrets } = context.sealConfig(id, after, undefined);
    const service = { name, service_type, config_encrypted, enabled, domains, stack };
    await createService(tx, service, secrets, { id });
  } else {
    const hasNewConfig = !isDeepStrictEqual(before.config, after.config);
    const mentioned = secretsIn(after.config);
    await updateService(tx, id, mentioned, ({ config_encrypted: stored }) => {
      const fields = changed(before, after, ['name', 'enabled', 'domains']);
      if (!hasNewConfig) return fields;
      const { sealed: config_encrypted, secrets } = context.sealConfig(id, after, stored);
      const moved = movedFile(service_type, before.config, after.config);
      return { ...fields, config_encrypted, secrets, ...(moved && { moved }) };
    });
  }
  if ((before?.active ?? false) === after.active) return;
  await (after.active ? setActive(tx, id) : setInactive(tx, id));
}

async function writeDomain(
  tx: Store,
  { id, before, after }: ObjectWrite<DomainObject>,
  { origin }: WriteContext,
): Promise<void> {
  if (!before) {
    const { name, host, description, enabled, policies, stack } = after;
    await createDomain(tx, { name, host, description, enabled, policies, stack }, id);
  } else await updateDomain(tx, id, changed(before, after, ['name', 'description', 'enabled', 'policies']));
  if (!isDeepStrictEqual(before?.variables ?? {}, after.variables))
    await replaceVariables(tx, { scope: 'domain', id }, after.variables, origin.actor);
}

async function writeCollection(
  tx: Store,
  { id, before, after }: ObjectWrite<CollectionObject>,
  { origin }: WriteContext,
): Promise<void> {
  if (!before) {
    const { host, name, description, base_path, enabled, policies, stack } = after;
    const domain_id = await domainIdOf(tx, host);
    await createCollection(tx, { domain_id, name, description, base_path, enabled, policies, stack }, id);
  } else {
    const fields = changed(before, after, ['description', 'base_path', 'enabled', 'policies']);
    await updateCollection(tx, id, fields);
  }
  if (!isDeepStrictEqual(before?.variables ?? {}, after.variables))
    await replaceVariables(tx, { scope: 'collection', id }, after.variables, origin.actor);
}

async function domainIdOf(tx: Store, host: string): Promise<string> {
  const row = await tx.knex('domains').where({ host }).first<{ id: string } | undefined>('id');
  if (row) return row.id;
  throw new AppError('plan_changed', `There is no domain with the host "${host}" any more. Plan again.`);
}
