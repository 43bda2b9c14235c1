/**
 * What changes of domains and collections do to endpoints: gateways have to look at them again, and their routes may
 * run into those of others.
 */
import { AppError } from '../errors.js';
import { type Store, violatedConstraint } from './database.js';

/**
 * Locks the endpoints that are routed depending on a domain: those in its collections, and those that name its host,
 * or that which it is about to get.
 * Every lock on several endpoints goes in the order of their ids, so that no two changes wait for each other.
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
export async function lockEndpointsOfCollection(tx: Store, id: string): Promise<string[]> {
  return tx.knex('endpoints').where({ collection_id: id }).orderBy('id').forUpdate().pluck<string[]>('id');
}

/** Makes the gateways look at endpoints again whose routing has changed by something above them. */
export async function touchEndpoints(tx: Store, ids: readonly string[]): Promise<void> {
  await tx
    .knex('endpoints')
    .whereRaw('id = ANY(?)', [[...ids]])
    .update({ version: tx.knex.raw('version + 1') });
  for (const id of ids) tx.announce('endpoint', id);
}

export async function deleteEndpoints(tx: Store, ids: readonly string[]): Promise<void> {
  await tx
    .knex('endpoints')
    .whereRaw('id = ANY(?)', [[...ids]])
    .delete();
  for (const id of ids) tx.announce('endpoint', id);
}

/** A route that was about to be written. */
export interface RouteClaim {
  /** The endpoint that was to have it; null when that is new. */
  readonly id: string | null;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  readonly route_key: string;
}

/** What was being written when the route of one endpoint ran into that of another. */
export type RouteChange =
  | { readonly renamedDomain: string; readonly host: string }
  | { readonly claims: () => readonly RouteClaim[] };

/** The two that collide. */
interface Collision {
  readonly id: string;
  readonly name: string;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
}

/** Runs a write; when two endpoints would have the same route, says which one has it already. */
export async function namingRouteOwner<T>(
  store: Store,
  change: RouteChange,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    if (violatedConstraint(thrown) !== 'endpoints_route_unique') throw thrown;
    // The transaction is over; whoever had the route may have given it up in the meantime.
    const owner =
      'renamedDomain' in change
        ? await collisionOfRename(store, change.renamedDomain, change.host)
        : await collisionOfClaims(store, change.claims());
    throw new AppError(
      'route_taken',
      owner
        ? `${owner.method} ${owner.route} on domain "${owner.domain}" is taken by the endpoint "${owner.name}" (${owner.id})`
        : 'Another endpoint already has this method and route on this domain',
      owner ? { details: { endpoint_id: owner.id } } : {},
      { cause: thrown },
    );
  }
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

/** Of two endpoints that were to have the same route, the first, under the route it was to have. */
async function twin(store: Store, claim: RouteClaim | undefined): Promise<Collision | undefined> {
  if (!claim?.id) return undefined;
  const { id, domain, method, route } = claim;
  const found = await store.knex<{ id: string; name: string }>('endpoints').where({ id }).first('name');
  return found && { id, name: found.name, domain, method, route };
}
