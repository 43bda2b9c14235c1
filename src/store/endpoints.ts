/** The table `endpoints`: a route and its code. Its run state is in `endpoint-runs.ts`. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../errors.js';
import type { Dependencies } from '../model/crates.js';
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { EndpointMethod } from '../model/endpoint-method.js';
import type { Policies } from '../model/policies/policies.js';
import { joinRoute, RouteSyntaxError, routeKey } from '../model/route-pattern.js';
import {
  type Edition,
  type FileRef,
  type FileRefs,
  requireSource,
  SOURCE_MEMBERS,
} from '../model/source-files.js';
import { type KeyedSource, sourceKey } from '../model/source-key.js';
import { requireServicesForDomain } from './bindings.js';
import { nextUpdatedAt, type Store, transaction } from './database.js';
import type { ServingKind } from './deployments.js';
import { LAST_FAILURE, type LastFailure, RECENT_ERRORS } from './endpoint-failures.js';
import type { StickyBy } from './endpoint-runs.js';
import { columnValues, insertInto } from './insert.js';
import { IS_LIVE_NODE } from './nodes.js';
import type { ServingVersion, VersionState } from './observations.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';
import { namingRouteOwner, type RouteClaim } from './routed-endpoints.js';

/** A deployment as an endpoint shows it. */
export interface DeploymentInForce {
  readonly id: string;
  readonly kind: ServingKind;
  readonly targets: readonly { readonly version: number; readonly percent: number }[];
  readonly sticky: StickyBy | null;
  readonly message: string | null;
  /** ISO 8601. */
  readonly created_at: string;
}

export type EndpointStatus = 'created' | 'compiled' | 'running' | 'stopped' | 'error';

/** A row, with the processes that run now. */
export interface Endpoint {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly method: EndpointMethod;
  /** A hostname in lower case, or `*`. There need not be a domain with this host. */
  readonly domain: string;
  readonly collection_id: string | null;
  readonly description: string | null;
  readonly code: string | null;
  /** Null: 2021. */
  readonly edition: Edition | null;
  /** The path of the code among the files; null: `handler.rs`. */
  readonly entry: string | null;
  /** The files beside the code; null: none. */
  readonly files: FileRefs | null;
  readonly dependencies: Dependencies | null;
  /** The Cargo.lock of its author; null: none. */
  readonly lock: FileRef | null;
  readonly limits: EndpointLimits | null;
  readonly policies: Policies | null;
  readonly enabled: boolean;
  /** The stack of files that it belongs to; null: none. */
  readonly stack: string | null;
  /** Base path and path joined. */
  readonly route: string;
  /** Equal for routes that match the same requests. */
  readonly route_key: string;
  readonly source_key: string;
  readonly status: EndpointStatus;
  readonly last_error: string | null;
  readonly build_id: string | null;
  readonly artifact: string | null;
  readonly artifact_source_key: string | null;
  /** The newest version, which `artifact` was made of; null before the first compile. */
  readonly latest_version: number | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  /**
   * The processes that serve it on each live gateway where it runs, the longest-lived gateway and the greatest share
   * first; none where it is asleep.
   */
  readonly serving: readonly (readonly ServingVersion[])[];
  /** How the versions of its deployment stand on each live gateway. */
  readonly observed: readonly VersionState[];
  /** The last one that ran everywhere; null when nothing should run. */
  readonly deployment: DeploymentInForce | null;
  /** Requests of the last hour with an error, or a failed call of a service, in the log; at most 1000. */
  readonly recent_errors: number;
  /** The newest error of a request in the log of the last day. */
  readonly last_failure: LastFailure | null;
}

/** Whether its code has changed since it was compiled. */
export function needsCompile({
  artifact,
  artifact_source_key,
  source_key,
}: Pick<Endpoint, 'artifact' | 'artifact_source_key' | 'source_key'>): boolean {
  return artifact !== null && artifact_source_key !== source_key;
}

/** The columns that a user sets. */
const USER_COLUMNS = [
  ...(['name', 'path', 'method', 'domain', 'collection_id', 'description', 'enabled'] as const),
  ...SOURCE_MEMBERS,
  ...(['limits', 'policies'] as const),
] as const;
/** Columns computed from those. */
const DERIVED_COLUMNS = ['route', 'route_key', 'source_key'] as const;
/** Columns that the database sets. */
const GENERATED_COLUMNS = [
  ...(['id', 'status', 'last_error', 'build_id', 'artifact', 'artifact_source_key'] as const),
  ...(['latest_version'] as const),
  ...(['created_at', 'updated_at'] as const),
] as const;

export type NewEndpoint = Pick<Endpoint, (typeof USER_COLUMNS)[number]> & Partial<Pick<Endpoint, 'stack'>>;
type Derived = Pick<Endpoint, (typeof DERIVED_COLUMNS)[number]>;
type Generated = Pick<Endpoint, (typeof GENERATED_COLUMNS)[number]>;

/** Does not read back known values, such as the code. */
const insertEndpoint = insertInto<NewEndpoint & Derived & Pick<Endpoint, 'id'>, Generated>(
  'endpoints',
  ['id', ...USER_COLUMNS, ...DERIVED_COLUMNS, 'stack'],
  GENERATED_COLUMNS,
);

export interface EndpointFilter {
  readonly domain?: string;
  readonly collection_id?: string;
  readonly enabled?: boolean;
}

/** Columns that are read from other tables. */
const SERVING = `(
  SELECT coalesce(jsonb_agg(observations.serving ORDER BY nodes.started_at, nodes.id), '[]')
    FROM observations JOIN nodes ON nodes.id = observations.node_id
   WHERE observations.endpoint_id = endpoints.id AND observations.state = 'running'
     AND ${IS_LIVE_NODE}) AS serving`;
const OBSERVED = `(
  SELECT coalesce(jsonb_agg(observed ORDER BY nodes.started_at, nodes.id), '[]')
    FROM observations JOIN nodes ON nodes.id = observations.node_id, jsonb_array_elements(observations.versions) AS observed
   WHERE observations.endpoint_id = endpoints.id AND ${IS_LIVE_NODE}) AS observed`;
const DEPLOYMENT = `(
  SELECT jsonb_build_object('id', deployments.id, 'kind', kind, 'targets', targets, 'sticky', sticky,
                            'message', message, 'created_at', created_at)
    FROM deployments WHERE deployments.id = endpoints.confirmed_deployment_id) AS deployment`;

const READ_BESIDES = [SERVING, OBSERVED, DEPLOYMENT, RECENT_ERRORS, LAST_FAILURE];
const NOTHING_YET = {
  serving: [],
  observed: [],
  deployment: null,
  recent_errors: 0,
  last_failure: null,
} as const;

/** SQL: policies as lists show them: of `validate`, which may be large, only its mode. */
const BRIEF_POLICIES = `(CASE WHEN endpoints.policies->'validate'->'mode' IS NULL THEN endpoints.policies ELSE
  jsonb_set(endpoints.policies, '{validate}', jsonb_build_object('mode', endpoints.policies->'validate'->'mode'))
  END)`;

const ORDER = byCreation('endpoints', 'asc', ['name', 'route', 'domain', 'description'], 'endpoint');

export async function listEndpoints(
  store: Store,
  filter: EndpointFilter = {},
  options: ListOptions = {},
): Promise<Page<Endpoint>> {
  const query = store
    .knex('endpoints')
    .where(filter)
    // The last column of a name counts.
    .select(
      'endpoints.*',
      ...[...READ_BESIDES, `${BRIEF_POLICIES} AS policies`].map((column) => store.knex.raw(column)),
    );
  return readPage(store, query, ORDER, options);
}

/** The bytes of code and policies that a list would have in memory. */
export async function bytesOfList(
  store: Store,
  filter: EndpointFilter = {},
  options: ListOptions = {},
): Promise<number> {
  const query = store
    .knex('endpoints')
    .where(filter)
    .select(
      store.knex.raw(
        `coalesce(octet_length(code), 0) + coalesce(octet_length(${BRIEF_POLICIES}::text), 0)
           + coalesce(pg_column_size(files), 0) AS bytes`,
      ),
    );
  const { rows } = await readPage<{ bytes: number }>(store, query, ORDER, options);
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}

export async function findEndpoint(store: Store, id: string): Promise<Endpoint | undefined> {
  return store
    .knex('endpoints')
    .where({ id })
    .first<Endpoint | undefined>('endpoints.*', ...READ_BESIDES.map((column) => store.knex.raw(column)));
}

/** What is compiled of it. */
export async function findSource(
  store: Store,
  id: string,
): Promise<(Pick<Endpoint, 'domain' | 'source_key'> & KeyedSource) | undefined> {
  return store
    .knex<Endpoint>('endpoints')
    .where({ id })
    .first('domain', 'source_key', ...SOURCE_MEMBERS);
}

/** Undefined when there is no such endpoint: the cheapest way to ask for that, too. */
export async function endpointName(store: Store, id: string): Promise<string | undefined> {
  return (await store.knex<Endpoint>('endpoints').where({ id }).first('name'))?.name;
}

/** @throws AppError not_found (the collection), domain_mismatch, route_taken, invalid_input */
export async function createEndpoint(
  store: Store,
  endpoint: NewEndpoint,
  id: string = randomUUID(),
): Promise<Endpoint> {
  let claims: readonly RouteClaim[] = [];
  const insert = async (tx: Store): Promise<Endpoint> => {
    const routes = await routesOf(tx, endpoint);
    claims = [{ id: null, domain: endpoint.domain, method: endpoint.method, ...routes }];
    const source_key = sourceKey(requireSource(endpoint));
    const row = { ...endpoint, id, ...routes, source_key };
    const generated = await insertEndpoint(tx, row);
    tx.announce('endpoint', generated.id);
    return { ...row, stack: row.stack ?? null, ...generated, ...NOTHING_YET };
  };
  return namingRouteOwner(store, { claims: () => claims }, () =>
    // Without a collection there is nothing to lock, so one statement suffices.
    endpoint.collection_id === null ? insert(store) : transaction(store, insert),
  );
}

/**
 * Changes the given fields.
 * @returns undefined when there is no such endpoint; with it, whether gateways have to route, limit or refuse otherwise
 * @throws AppError not_found (the collection), domain_mismatch, service_not_for_domain, route_taken, invalid_input
 */
export async function updateEndpoint(
  store: Store,
  id: string,
  changes: Partial<Omit<NewEndpoint, 'stack'>>,
): Promise<{ readonly endpoint: Endpoint; readonly concernsGateways: boolean } | undefined> {
  let claims: readonly RouteClaim[] = [];
  return namingRouteOwner(store, { claims: () => claims }, () =>
    transaction(store, async (tx) => {
      const before = await lockEndpoint(tx, id, changes.collection_id);
      if (!before) return undefined;
      const updated = async (concernsGateways: boolean) => {
        const endpoint = await findEndpoint(tx, id);
        return endpoint && { endpoint, concernsGateways };
      };
      if (Object.keys(changes).length === 0) return updated(false);
      const after: NewEndpoint = { ...before, ...changes };
      if (after.domain !== before.domain) await requireServicesForDomain(tx, [id], after.domain);
      const routes = await routesOf(tx, after);
      claims = [{ id, domain: after.domain, method: after.method, ...routes }];
      const rerouted =
        routes.route !== before.route ||
        (['method', 'domain', 'enabled', 'collection_id'] as const).some((key) => after[key] !== before[key]);
      const hasNewLimits = 'limits' in changes && !isDeepStrictEqual(after.limits, before.limits);
      const hasNewPolicies = 'policies' in changes && !isDeepStrictEqual(after.policies, before.policies);
      const concernsGateways = rerouted || hasNewLimits || hasNewPolicies;
      await tx
        .knex('endpoints')
        .where({ id })
        .update({
          ...columnValues(changes),
          ...routes,
          source_key: sourceKey('entry' in changes || 'files' in changes ? requireSource(after) : after),
          ...(concernsGateways && { version: tx.knex.raw('version + 1') }),
          updated_at: nextUpdatedAt(tx),
        });
      if (concernsGateways) tx.announce('endpoint', id);
      return updated(concernsGateways);
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
 * Locks an endpoint for a change, its domain and collection first: changes of those lock top-down too, and one lock
 * order avoids deadlocks.
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
    // Moved to another collection before it was locked: retry.
    if (locked.collection_id === seen.collection_id) return { ...locked, ...NOTHING_YET };
  }
}

/** The collection of an endpoint, locked against changes until the commit. */
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
