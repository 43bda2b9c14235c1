/** The run state of endpoints: the desired state, and the status that follows from the observed state. */
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';
import type { Observation } from './observations.js';

/** An endpoint as a gateway reads it. */
export interface RoutedEndpoint {
  readonly id: string;
  readonly version: number;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  /** False when the endpoint, its collection or its domain is disabled. */
  readonly routed: boolean;
  readonly limits: EndpointLimits | null;
  readonly desired_artifact: string | null;
  /** Request id of the API call that set it. */
  readonly desired_by: string | null;
  /** True when it was stopped after its last start. */
  readonly stopped: boolean;
}

/** Identifies a state of an endpoint. */
export interface EndpointVersion {
  readonly id: string;
  readonly version: number;
}

/** The versions of all endpoints, for a resync. */
export async function endpointVersions(store: Store): Promise<EndpointVersion[]> {
  return store.knex('endpoints').select<EndpointVersion[]>('id', 'version');
}

/** The routing view of some endpoints; ids that do not exist are left out. */
export async function routedEndpoints(store: Store, ids: readonly string[]): Promise<RoutedEndpoint[]> {
  return store
    .knex('endpoints')
    .leftJoin('collections', 'collections.id', 'endpoints.collection_id')
    .leftJoin({ parents: 'domains' }, 'parents.id', 'collections.domain_id')
    .leftJoin({ hosts: 'domains' }, 'hosts.host', 'endpoints.domain')
    .whereIn('endpoints.id', ids)
    .select<RoutedEndpoint[]>(
      'endpoints.id',
      'endpoints.version',
      'endpoints.domain',
      'endpoints.method',
      'endpoints.route',
      'endpoints.limits',
      'endpoints.desired_artifact',
      'endpoints.desired_by',
      store.knex.raw("endpoints.status = 'stopped' AS stopped"),
      store.knex.raw(
        `(endpoints.enabled AND coalesce(collections.enabled, true)
          AND coalesce(parents.enabled, true) AND coalesce(hosts.enabled, true)) AS routed`,
      ),
    );
}

/** A requested start. */
export interface RequestedStart {
  /** Gateways that have reconciled this version, or a later one, know of the start. */
  readonly version: number;
  readonly artifact: string;
  /** False when this artifact was already the desired one: then a failed start does not revert it. */
  readonly isNew: boolean;
}

/**
 * Makes the endpoint's artifact the desired one. Nothing changes when it already is, unless the endpoint is in error:
 * then the gateways try again.
 * @returns undefined when there is no endpoint; `artifact: null` when it has no successful build
 */
export async function requestStart(
  store: Store,
  id: string,
  requestId: string,
): Promise<RequestedStart | { readonly artifact: null } | undefined> {
  const { rows } = await store.knex.raw<{ rows: StartRow[] }>(
    `WITH wanted AS (SELECT id, artifact, desired_artifact, version, status FROM endpoints WHERE id = ? FOR UPDATE),
     changed AS (
       UPDATE endpoints SET desired_artifact = wanted.artifact, desired_by = ?, version = endpoints.version + 1
         FROM wanted
        WHERE endpoints.id = wanted.id AND wanted.artifact IS NOT NULL
          AND (wanted.desired_artifact IS DISTINCT FROM wanted.artifact OR wanted.status = 'error')
       RETURNING endpoints.version)
     SELECT wanted.artifact, wanted.desired_artifact, wanted.version, changed.version AS changed_version
       FROM wanted LEFT JOIN changed ON true`,
    [id, requestId],
  );
  const endpoint = rows[0];
  if (!endpoint) return undefined;
  const { artifact, desired_artifact, version, changed_version } = endpoint;
  if (artifact === null) return { artifact };
  if (changed_version !== null) store.announce('endpoint', id);
  return { version: changed_version ?? version, artifact, isNew: desired_artifact !== artifact };
}

interface StartRow {
  readonly artifact: string | null;
  readonly desired_artifact: string | null;
  readonly version: number;
  /** Null when nothing changed. */
  readonly changed_version: number | null;
}

/** The desired state of an endpoint, and its observations by the live gateways. */
export interface ObservedRun {
  /** The desired artifact; null when none should run. */
  readonly desired_artifact: string | null;
  /** One for each live gateway, the longest-lived first; undefined for one that has not observed it yet. */
  readonly observations: readonly (RunObservation | undefined)[];
}

export interface RunObservation
  extends Pick<Observation, 'state' | 'artifact' | 'version' | 'pid' | 'error'> {
  /** Of the machine the gateway runs on. */
  readonly hostname: string;
}

/** @returns undefined when there is no such endpoint */
export async function observedRun(store: Store, id: string): Promise<ObservedRun | undefined> {
  const { rows } = await store.knex.raw<{ rows: ObservedRow[] }>(
    `SELECT endpoints.desired_artifact, gateways.id AS node_id, state, observations.artifact, observations.version,
            observations.pid, error, gateways.hostname
       FROM endpoints
       LEFT JOIN (SELECT id, hostname, started_at FROM nodes WHERE kind = 'gateway' AND ${IS_LIVE_NODE})
         AS gateways ON true
       LEFT JOIN observations ON observations.node_id = gateways.id AND observations.endpoint_id = endpoints.id
      WHERE endpoints.id = ? ORDER BY gateways.started_at`,
    [id],
  );
  const first = rows[0];
  if (!first) return undefined;
  const ofGateways = rows.filter(({ node_id }) => node_id !== null);
  return {
    desired_artifact: first.desired_artifact,
    observations: ofGateways.map((row) => (row.state === null ? undefined : (row as RunObservation))),
  };
}

type ObservedRow = { readonly [Key in keyof RunObservation]: RunObservation[Key] | null } & {
  readonly desired_artifact: string | null;
  readonly node_id: string | null;
};

/** Records that a start succeeded on all gateways. Does nothing when the desired state has changed since. */
export async function confirmRun(store: Store, id: string, { artifact }: RequestedStart): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_artifact: artifact })
    .update({ status: 'running', last_error: null, confirmed_artifact: artifact });
}

/**
 * Records a failed start: stores the error, and reverts the desired state if this start changed it. Does nothing when
 * the desired state has changed since.
 */
export async function revertRun(store: Store, id: string, run: RequestedStart, error: string): Promise<void> {
  const failed = { status: 'error', last_error: error };
  const endpoint = store.knex('endpoints').where({ id, desired_artifact: run.artifact });
  if (!run.isNew) {
    await endpoint.update(failed);
    return;
  }
  const reverted = await endpoint.update({
    ...failed,
    desired_artifact: store.knex.ref('confirmed_artifact'),
    // Other changes meanwhile, such as one of the route, must not keep a build that does not start.
    version: store.knex.raw('version + 1'),
  });
  if (reverted > 0) store.announce('endpoint', id);
}

/**
 * Sets the desired state to stopped.
 * @returns the version to wait for; undefined when it was already stopped
 */
export async function requestStop(store: Store, id: string): Promise<number | undefined> {
  const [stopped] = await store
    .knex('endpoints')
    .where({ id })
    .whereNotNull('desired_artifact')
    .update({
      desired_artifact: null,
      confirmed_artifact: null,
      status: 'stopped',
      last_error: null,
      version: store.knex.raw('version + 1'),
    })
    .returning<{ version: number }[]>('version');
  if (stopped) store.announce('endpoint', id);
  return stopped?.version;
}

/**
 * Records that a gateway cannot keep the handler running: the endpoint is in error, and the gateway keeps retrying.
 * @param version the version of the endpoint; does nothing when the desired state has changed since
 */
export async function reportCrashLoop(
  store: Store,
  id: string,
  artifact: string,
  version: number,
  error: string,
): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_artifact: artifact, version })
    .update({ status: 'error', last_error: error });
}

/** Records the end of a crash loop. */
export async function reportRecovery(store: Store, id: string, artifact: string): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_artifact: artifact, status: 'error' })
    .update({ status: 'running', last_error: null });
}

/** All desired artifacts. */
export async function desiredArtifacts(store: Store): Promise<string[]> {
  return store.knex('endpoints').whereNotNull('desired_artifact').distinct().pluck('desired_artifact');
}
