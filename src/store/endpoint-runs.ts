/** The run state of endpoints: what should run (desired), and the status that follows from what was observed. */
import type { EndpointLimits } from '../endpoint-limits.js';
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';
import type { Observation } from './observations.js';

/** What a gateway needs to know of an endpoint. */
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
  /** Request id of the API call that asked for it. */
  readonly desired_by: string | null;
  /** True when it was stopped, and nothing else was asked for since. */
  readonly stopped: boolean;
}

/** Identifies a state of an endpoint without reading it. */
export interface EndpointVersion {
  readonly id: string;
  readonly version: number;
}

/** All endpoints with their versions: what a gateway compares with what it has. */
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

/** A start that was asked for. */
export interface DesiredRun {
  /** Gateways that have acted on this version, or a later one, have seen the wish. */
  readonly version: number;
  readonly artifact: string;
  /** False when the same was wanted before: then this start is not the one to take the wish back. */
  readonly isNew: boolean;
}

/**
 * Asks for the endpoint's artifact to run. An endpoint that already runs it stays as it is, unless it is in error: then
 * the gateways are asked to look again.
 * @returns undefined when there is no endpoint; `artifact: null` when it has no successful build
 */
export async function desireRun(
  store: Store,
  id: string,
  requestId: string,
): Promise<DesiredRun | { readonly artifact: null } | undefined> {
  const { rows } = await store.knex.raw<{ rows: DesiredRow[] }>(
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

interface DesiredRow {
  readonly artifact: string | null;
  readonly desired_artifact: string | null;
  readonly version: number;
  /** Null when nothing had to be changed. */
  readonly changed_version: number | null;
}

/** What the live gateways make of a wish. */
export interface ObservedRun {
  /** What is wanted now. */
  readonly desired_artifact: string | null;
  /** One for each live gateway, the longest-lived first; undefined for one that has not looked yet. */
  readonly observations: readonly (RunObservation | undefined)[];
}

export interface RunObservation
  extends Pick<Observation, 'state' | 'artifact' | 'version' | 'pid' | 'error'> {
  /** Of the machine the gateway runs on. */
  readonly hostname: string;
}

/** @returns undefined when the endpoint is gone */
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

/** A start was seen on all gateways. Does nothing if something else was asked for in the meantime. */
export async function confirmRun(store: Store, id: string, { artifact }: DesiredRun): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_artifact: artifact })
    .update({ status: 'running', last_error: null, confirmed_artifact: artifact });
}

/**
 * A start failed: the reason goes to the endpoint, and if it was this start that changed what should run, back to what
 * ran before. Does nothing if something else was asked for in the meantime.
 */
export async function revertRun(store: Store, id: string, run: DesiredRun, error: string): Promise<void> {
  const failed = { status: 'error', last_error: error };
  const endpoint = store.knex('endpoints').where({ id, desired_artifact: run.artifact });
  if (!run.isNew) {
    await endpoint.update(failed);
    return;
  }
  const reverted = await endpoint.update({
    ...failed,
    desired_artifact: store.knex.ref('confirmed_artifact'),
    // Whatever else has counted it up meanwhile, a new route say, is no reason to keep a build that does not start.
    version: store.knex.raw('version + 1'),
  });
  if (reverted > 0) store.announce('endpoint', id);
}

/** Asks for nothing to run. @returns the version to wait for; undefined when nothing should have been running anyway */
export async function desireStop(store: Store, id: string): Promise<number | undefined> {
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
 * A gateway cannot keep the handler running: the endpoint is in error, and is still tried from time to time.
 * @param version of the endpoint whose handler it is: a wish after that gets a chance of its own
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

/** A handler that crashed over and over has kept running for a while. */
export async function reportRecovery(store: Store, id: string, artifact: string): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_artifact: artifact, status: 'error' })
    .update({ status: 'running', last_error: null });
}

/** All artifacts that should run somewhere. */
export async function desiredArtifacts(store: Store): Promise<string[]> {
  return store.knex('endpoints').whereNotNull('desired_artifact').distinct().pluck('desired_artifact');
}
