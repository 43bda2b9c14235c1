/** The table `endpoints`: a route and the code behind it. What runs of it is in `endpoint-runs.ts`. */
import { isDeepStrictEqual } from 'node:util';
import type { Dependencies } from '../dependencies.js';
import type { EndpointLimits } from '../endpoint-limits.js';
import type { EndpointMethod } from '../endpoint-method.js';
import { AppError } from '../errors.js';
import { joinRoute, RouteSyntaxError, routeKey } from '../route-pattern.js';
import { sourceKey } from '../source-key.js';
import { nextUpdatedAt, type Store, transaction } from './database.js';
import { insertInto } from './insert.js';
import { IS_LIVE_NODE } from './nodes.js';
import { namingRouteOwner, type RouteClaim } from './routed-endpoints.js';

export type EndpointStatus = 'created' | 'compiled' | 'running' | 'stopped' | 'error';

/** What a user says of an endpoint. */
export interface NewEndpoint {
  readonly name: string;
  readonly path: string;
  readonly method: EndpointMethod;
  /** A hostname in lower case, or `*`. It need not be the host of a domain. */
  readonly domain: string;
  readonly collection_id: string | null;
  readonly description: string | null;
  readonly code: string | null;
  readonly dependencies: Dependencies | null;
  readonly limits: EndpointLimits | null;
  readonly enabled: boolean;
}

/** A row, with what runs of it now. */
export interface Endpoint extends NewEndpoint {
  readonly id: string;
  /** Base path and path joined. */
  readonly route: string;
  readonly source_key: string;
  readonly status: EndpointStatus;
  readonly last_error: string | null;
  readonly build_id: string | null;
  readonly artifact: string | null;
  readonly artifact_source_key: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** The processes that serve it on live gateways, the longest-lived gateway first. */
  readonly running_pids: readonly (number | null)[];
}

export interface EndpointFilter {
  readonly domain?: string;
  readonly collection_id?: string;
  readonly enabled?: boolean;
}

const RUNNING_PIDS = `ARRAY(
  SELECT observations.pid FROM observations JOIN nodes ON nodes.id = observations.node_id
   WHERE observations.endpoint_id = endpoints.id AND observations.state = 'running'
     AND ${IS_LIVE_NODE}
   ORDER BY nodes.started_at, nodes.id) AS running_pids`;

/** Reads back only what the database adds: the rest, the code above all, need not come back. */
const insertEndpoint = insertInto<
  Omit<NewEndpoint, 'dependencies' | 'limits'> & {
    readonly dependencies: string | null;
    readonly limits: string | null;
    readonly route: string;
    readonly route_key: string;
    readonly source_key: string;
  },
  Pick<Endpoint, 'id' | 'status' | 'created_at' | 'updated_at'>
>(
  'endpoints',
  [
    'name',
    'path',
    'method',
    'domain',
    'collection_id',
    'description',
    'code',
    'dependencies',
    'limits',
    'enabled',
    'route',
    'route_key',
    'source_key',
  ],
  ['id', 'status', 'created_at', 'updated_at'],
);

export async function listEndpoints(store: Store, filter: EndpointFilter = {}): Promise<Endpoint[]> {
  return store
    .knex('endpoints')
    .where(filter)
    .orderBy(['created_at', 'id'])
    .select<Endpoint[]>('endpoints.*', store.knex.raw(RUNNING_PIDS));
}

export async function findEndpoint(store: Store, id: string): Promise<Endpoint | undefined> {
  return store
    .knex('endpoints')
    .where({ id })
    .first<Endpoint | undefined>('endpoints.*', store.knex.raw(RUNNING_PIDS));
}

/** @throws AppError not_found (the collection), domain_mismatch, route_taken, invalid_input */
export async function createEndpoint(store: Store, endpoint: NewEndpoint): Promise<Endpoint> {
  let claims: readonly RouteClaim[] = [];
  const source_key = sourceKey(endpoint.code, endpoint.dependencies);
  const insert = async (tx: Store): Promise<Endpoint> => {
    const routes = await routesOf(tx, endpoint);
    claims = [{ id: null, ...pick(endpoint), ...routes }];
    // Written out: spreading objects of this size takes V8 as long as parsing the request.
    const created = await insertEndpoint(tx, {
      name: endpoint.name,
      path: endpoint.path,
      method: endpoint.method,
      domain: endpoint.domain,
      collection_id: endpoint.collection_id,
      description: endpoint.description,
      code: endpoint.code,
      enabled: endpoint.enabled,
      dependencies: jsonb(endpoint.dependencies),
      limits: jsonb(endpoint.limits),
      route: routes.route,
      route_key: routes.route_key,
      source_key,
    });
    tx.announce('endpoint', created.id);
    return {
      id: created.id,
      name: endpoint.name,
      path: endpoint.path,
      method: endpoint.method,
      domain: endpoint.domain,
      collection_id: endpoint.collection_id,
      description: endpoint.description,
      code: endpoint.code,
      enabled: endpoint.enabled,
      dependencies: endpoint.dependencies,
      limits: endpoint.limits,
      route: routes.route,
      source_key,
      status: created.status,
      last_error: null,
      build_id: null,
      artifact: null,
      artifact_source_key: null,
      created_at: created.created_at,
      updated_at: created.updated_at,
      running_pids: [],
    };
  };
  return namingRouteOwner(store, { claims: () => claims }, () =>
    // Without a collection there is nothing to lock: one statement does it.
    endpoint.collection_id === null ? insert(store) : transaction(store, insert),
  );
}

/**
 * Changes the given fields.
 * @returns undefined when there is no such endpoint
 * @throws AppError not_found (the collection), domain_mismatch, route_taken, invalid_input
 */
export async function updateEndpoint(
  store: Store,
  id: string,
  changes: Partial<NewEndpoint>,
): Promise<Endpoint | undefined> {
  let claims: readonly RouteClaim[] = [];
  return namingRouteOwner(store, { claims: () => claims }, () =>
    transaction(store, async (tx) => {
      const before = await lockEndpoint(tx, id, changes.collection_id);
      if (!before || Object.keys(changes).length === 0) return before && findEndpoint(tx, id);
      const after: NewEndpoint = { ...before, ...changes };
      const routes = await routesOf(tx, after);
      claims = [{ id, ...pick(after), ...routes }];
      const rerouted =
        routes.route !== before.route ||
        (['method', 'domain', 'enabled', 'collection_id'] as const).some((key) => after[key] !== before[key]);
      const hasNewLimits = 'limits' in changes && !isDeepStrictEqual(after.limits, before.limits);
      // What gateways have to know of.
      const concernsGateways = rerouted || hasNewLimits;
      await tx
        .knex('endpoints')
        .where({ id })
        .update({
          ...changes,
          ...routes,
          ...('dependencies' in changes && { dependencies: jsonb(after.dependencies) }),
          ...('limits' in changes && { limits: jsonb(after.limits) }),
          source_key: sourceKey(after.code, after.dependencies),
          ...(concernsGateways && { version: tx.knex.raw('version + 1') }),
          updated_at: nextUpdatedAt(tx),
        });
      if (concernsGateways) tx.announce('endpoint', id);
      return findEndpoint(tx, id);
    }),
  );
}

/** @returns false when there is no such endpoint */
export async function deleteEndpoint(store: Store, id: string): Promise<boolean> {
  const deleted = await store.knex('endpoints').where({ id }).delete();
  if (deleted > 0) store.announce('endpoint', id);
  return deleted > 0;
}

/**
 * Locks an endpoint for a change, what stands above it first: changes of domains and collections lock from the top
 * down too, and locks taken in one order cannot wait for each other in a circle.
 */
async function lockEndpoint(
  tx: Store,
  id: string,
  newCollection: string | null | undefined,
): Promise<Endpoint | undefined> {
  for (;;) {
    const seen = await tx.knex<Endpoint>('endpoints').where({ id }).first('collection_id');
    if (!seen) return undefined;
    await lockParents(tx, newCollection === undefined ? seen.collection_id : newCollection);
    const locked = await tx
      .knex('endpoints')
      .where({ id })
      .forUpdate()
      .first<Endpoint | undefined>('endpoints.*');
    if (!locked) return undefined;
    // Moved to another collection between the look and the lock: look again.
    if (locked.collection_id === seen.collection_id) return { ...locked, running_pids: [] };
  }
}

/** What an endpoint needs to know of its collection, locked against changes until the commit. */
async function lockParents(
  tx: Store,
  collectionId: string | null,
): Promise<{ base_path: string | null; host: string } | undefined> {
  if (collectionId === null) return undefined;
  const domain = await tx
    .knex('domains')
    .whereIn('id', tx.knex('collections').select('domain_id').where({ id: collectionId }))
    .forShare()
    .first<{ host: string } | undefined>('host');
  const collection = await tx
    .knex('collections')
    .where({ id: collectionId })
    .forShare()
    .first<{ base_path: string | null } | undefined>('base_path');
  return domain && collection && { ...domain, ...collection };
}

/** The route of an endpoint, which depends on its collection. */
async function routesOf(
  tx: Store,
  endpoint: Pick<NewEndpoint, 'collection_id' | 'domain' | 'path'>,
): Promise<{ route: string; route_key: string }> {
  const { collection_id, domain, path } = endpoint;
  const basePath = collection_id === null ? null : await basePathFor(tx, collection_id, domain);
  try {
    const route = joinRoute(basePath, path);
    return { route, route_key: routeKey(route) };
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw new AppError(
      'invalid_input',
      `body.path: ${basePath === null ? '' : `with the base path ${basePath} of the collection, it `}${thrown.message}`,
      {},
      { cause: thrown },
    );
  }
}

async function basePathFor(tx: Store, collectionId: string, domain: string): Promise<string | null> {
  const collection = await lockParents(tx, collectionId);
  if (!collection) throw new AppError('not_found', `The collection ${collectionId} does not exist`);
  if (domain !== '*' && domain !== collection.host) {
    throw new AppError(
      'domain_mismatch',
      `The endpoint is for the domain "${domain}", but its collection belongs to "${collection.host}"; they must be the same, or the endpoint's "*"`,
    );
  }
  return collection.base_path;
}

function pick({ domain, method }: NewEndpoint): Pick<NewEndpoint, 'domain' | 'method'> {
  return { domain, method };
}

/** pg would send a plain object as JSON too, but an array as a PostgreSQL array. */
function jsonb(value: Dependencies | EndpointLimits | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
