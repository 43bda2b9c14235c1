/**
 * The effects of changes of domains and collections on endpoints: gateways have to read them again, and their routes
 * may conflict.
 */
import type { Store } from './database.js';
import { namingOwner, type UniqueWrite } from './naming-owner.js';

/**
 * Locks the endpoints whose routing depends on a domain: those in its collections, and those with its current or new
 * host. Several endpoints are always locked in the order of their ids, to avoid deadlocks.
 */
export async function lockEndpointsOfDomain(
  tx: Store,
  domain: { readonly id: string; readonly host: string },
  nextHost = domain.host,
): Promise<string[]> {
  return tx
    .knex('endpoints')
    .whereIn('domain', [domain.host, nextHost])
    .orWhereIn('collection_id', tx.knex('collections').select('id').where({ domain_id: domain.id }))
    .orderBy('id')
    .forUpdate()
    .pluck<string[]>('id');
}

/** Locks the endpoints of a collection; in the order of their ids, see above. */
export function lockEndpointsOfCollection(tx: Store, id: string): Promise<string[]> {
  return lockEndpointsOfCollections(tx, [id]);
}

export async function lockEndpointsOfCollections(tx: Store, ids: readonly string[]): Promise<string[]> {
  return tx.knex('endpoints').whereIn('collection_id', ids).orderBy('id').forUpdate().pluck<string[]>('id');
}

export async function endpointsOfCollection(store: Store, id: string): Promise<string[]> {
  return store.knex('endpoints').where({ collection_id: id }).pluck<string[]>('id');
}

/** Increments the revisions of endpoints whose routing has changed with their domain or collection. */
export async function touchEndpoints(tx: Store, ids: readonly string[]): Promise<void> {
  await tx
    .knex('endpoints')
    .whereRaw('id = ANY(?)', [[...ids]])
    .update({ version: tx.knex.raw('version + 1') });
  for (const id of ids) tx.announce('endpoint', id);
}

/**
 * Has endpoints give up their routes, so that others can have these.
 * @param tx in which each of them is given a route afterwards
 */
export async function giveUpRoutes(tx: Store, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.knex.raw("UPDATE endpoints SET route_key = 'moves ' || id WHERE id = ANY(?)", [
    [...ids],
  ] as never[]);
}

export async function deleteEndpoints(tx: Store, ids: readonly string[]): Promise<void> {
  await tx
    .knex('endpoints')
    .whereRaw('id = ANY(?)', [[...ids]])
    .delete();
  for (const id of ids) tx.announce('endpoint', id);
}

/** A route about to be written. */
export interface RouteClaim {
  /** The endpoint that gets it; null when that is new. */
  readonly id: string | null;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  readonly route_key: string;
}

/** The write that caused two endpoints to have the same route. */
export type RouteChange =
  | { readonly renamedDomain: string; readonly host: string }
  | { readonly claims: () => readonly RouteClaim[] };

/** An endpoint that has the route already. */
interface Collision {
  readonly id: string;
  readonly name: string;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
}

/** Runs a write; when its route is taken, the error names the endpoint that has it. */
export function namingRouteOwner<T>(store: Store, change: RouteChange, write: () => Promise<T>): Promise<T> {
  const unique: UniqueWrite<Collision> = {
    constraint: 'endpoints_route_unique',
    owner: () =>
      'renamedDomain' in change
        ? collisionOfRename(store, change.renamedDomain, change.host)
        : collisionOfClaims(store, change.claims()),
    error: (owner) => ({
      code: 'route_taken',
      message: owner
        ? `${owner.method} ${owner.route} on domain "${owner.domain}" is taken by the endpoint "${owner.name}" (${owner.id})`
        : 'Another endpoint already has this method and route on this domain',
      ...(owner && { details: { endpoint_id: owner.id } }),
    }),
  };
  return namingOwner(unique, write);
}

async function collisionOfRename(store: Store, id: string, host: string): Promise<Collision | undefined> {
  return store
    .knex('domains')
    .join({ renamed: 'endpoints' }, 'renamed.domain', 'domains.host')
    .join({ owner: 'endpoints' }, (on) =>
      on
        .on('owner.method', 'renamed.method')
        .on('owner.route_key', 'renamed.route_key')
        .onVal('owner.domain', host),
    )
    .where('domains.id', id)
    .first<Collision | undefined>('owner.id', 'owner.name', 'owner.domain', 'owner.method', 'owner.route');
}

async function collisionOfClaims(
  store: Store,
  claims: readonly RouteClaim[],
): Promise<Collision | undefined> {
  const claimants = new Map<string, RouteClaim>();
  for (const claim of claims) {
    const { domain, method, route_key } = claim;
    const owner =
      (await store
        .knex<Collision & { route_key: string }>('endpoints')
        .where({ domain, method, route_key })
        .whereNotIn(
          'id',
          claims.flatMap(({ id }) => id ?? []),
        )
        .first('id', 'name', 'domain', 'method', 'route')) ??
      (await twin(store, claimants.get(`${domain} ${method} ${route_key}`)));
    if (owner) return owner;
    claimants.set(`${domain} ${method} ${route_key}`, claim);
  }
  return undefined;
}

/** The first of two endpoints of one write that would get the same route. */
async function twin(store: Store, claim: RouteClaim | undefined): Promise<Collision | undefined> {
  if (!claim?.id) return undefined;
  const { id, domain, method, route } = claim;
  const row = await store.knex<{ id: string; name: string }>('endpoints').where({ id }).first('name');
  return row && { id, name: row.name, domain, method, route };
}
