/** What gateways read of endpoints and report of them. What should run is decided in `deployments.ts`. */
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';
import type { Observation } from './observations.js';
import { POLICY_COLUMNS, POLICY_TEXTS, withAllTexts } from './policies.js';
import { environmentDigest } from './variables.js';

/** A version that should serve, with its share of the requests. */
export interface DeployedTarget {
  readonly version: number;
  /** 1 to 100. */
  readonly percent: number;
  /** Digest of the executable. */
  readonly artifact: string;
}

/** A header, or a cookie, whose value tells callers apart. */
export type StickyBy = { readonly header: string } | { readonly cookie: string };

/** What an endpoint should serve. */
export interface DesiredDeployment {
  readonly id: string;
  readonly targets: readonly DeployedTarget[];
  /** The header or cookie of callers that keep their version. */
  readonly sticky: StickyBy | null;
  /** Id of the API call that asked for it. */
  readonly request_id: string;
  /** False: somebody may wait until it runs. */
  readonly confirmed: boolean;
}

/** An endpoint as a gateway reads it. */
export interface RoutedEndpoint {
  readonly id: string;
  /** Counts its changes: the revision that gateways observe. Not a version of its handler. */
  readonly version: number;
  readonly domain: string;
  readonly method: string;
  readonly route: string;
  /** False when the endpoint, its collection or its domain is disabled. */
  readonly routed: boolean;
  readonly limits: EndpointLimits | null;
  /** Policies as JSON text: of its domain, its collection and itself. */
  readonly domain_policies: string | null;
  readonly collection_policies: string | null;
  readonly own_policies: string | null;
  readonly domain_id: string | null;
  readonly collection_id: string | null;
  /** What should serve; null: nothing. */
  readonly deployment: DesiredDeployment | null;
  /** Digest of its variables and secrets; null when it has none. */
  readonly environment: string | null;
  /** True when it was stopped after its last start. */
  readonly stopped: boolean;
  /** True when its handler could not be started or kept running, or its last compile failed. */
  readonly failed: boolean;
}

/** How often each endpoint has changed, for a resync. */
export async function endpointChangeCounts(store: Store): Promise<{ id: string; version: number }[]> {
  return store.knex('endpoints').select('id', 'version');
}

/** The routing view of some endpoints; ids that do not exist are left out. */
export async function routedEndpoints(store: Store, ids: readonly string[]): Promise<RoutedEndpoint[]> {
  const rows = await store
    .knex('endpoints')
    .leftJoin('collections', 'collections.id', 'endpoints.collection_id')
    .leftJoin({ parents: 'domains' }, 'parents.id', 'collections.domain_id')
    .leftJoin({ hosts: 'domains' }, 'hosts.host', 'endpoints.domain')
    .leftJoin('deployments', 'deployments.id', 'endpoints.desired_deployment_id')
    .whereIn('endpoints.id', ids)
    .select<RoutedEndpoint[]>(
      'endpoints.id',
      'endpoints.version',
      'endpoints.domain',
      'endpoints.method',
      'endpoints.route',
      'endpoints.limits',
      'endpoints.collection_id',
      store.knex.raw(`(${POLICY_COLUMNS.domain_id})::text AS domain_id`),
      ...Object.entries(POLICY_TEXTS).map(([name, column]) => store.knex.raw(`${column} AS ${name}`)),
      store.knex.raw(`CASE WHEN deployments.id IS NOT NULL THEN jsonb_build_object('id', deployments.id,
        'targets', deployments.targets, 'sticky', deployments.sticky, 'request_id', deployments.request_id,
        'confirmed', deployments.id IS NOT DISTINCT FROM endpoints.confirmed_deployment_id) END AS deployment`),
      store.knex.raw(`${environmentDigest('coalesce(parents.id, hosts.id)')} AS environment`),
      store.knex.raw("endpoints.status = 'stopped' AS stopped, endpoints.status = 'error' AS failed"),
      store.knex.raw(
        `(endpoints.enabled AND coalesce(collections.enabled, true)
          AND coalesce(parents.enabled, true) AND coalesce(hosts.enabled, true)) AS routed`,
      ),
    );
  return withAllTexts(rows);
}

/** The desired state of an endpoint, and its observations by the live gateways. */
export interface ObservedRun {
  /** The desired deployment; null when nothing should run. */
  readonly deployment_id: string | null;
  /** One for each live gateway, the longest-lived first; undefined for one that has not observed it yet. */
  readonly observations: readonly (RunObservation | undefined)[];
}

export interface RunObservation extends Pick<Observation, 'state' | 'revision' | 'serving' | 'error'> {
  /** The process, of a gateway from before there were versions. */
  readonly pid: number | null;
  /** Host name of the machine that the gateway runs on. */
  readonly hostname: string;
}

/** @returns undefined when there is no such endpoint */
export async function observedRun(store: Store, id: string): Promise<ObservedRun | undefined> {
  const { rows } = await store.knex.raw<{ rows: ObservedRow[] }>(
    `SELECT endpoints.desired_deployment_id AS deployment_id, gateways.id AS node_id, state, observations.version AS revision,
            observations.serving, observations.pid, error, gateways.hostname
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
    deployment_id: first.deployment_id,
    observations: ofGateways.map((row) => (row.state === null ? undefined : (row as RunObservation))),
  };
}

type ObservedRow = { readonly [Key in keyof RunObservation]: RunObservation[Key] | null } & {
  readonly deployment_id: string | null;
  readonly node_id: string | null;
};

/**
 * Records that a gateway cannot keep the handler running: the endpoint is in error, and the gateway keeps retrying. A
 * deployment that is still awaited is settled by who waits.
 * @param revision the revision of the endpoint; does nothing when the desired state has changed since
 */
export async function reportCrashLoop(
  store: Store,
  id: string,
  deployment: DesiredDeployment,
  revision: number,
  error: string,
): Promise<void> {
  await store.knex.raw(
    `WITH failed AS (
       UPDATE endpoints SET status = 'error', last_error = ?
        WHERE id = ? AND desired_deployment_id = ? AND confirmed_deployment_id = ? AND version = ? AND status <> 'error'
       RETURNING id)
     INSERT INTO deployments (endpoint_id, kind, targets, request_id, outcome, error, revision, finished_at)
     SELECT id, 'crash', ?, ?, 'failed', ?, ?, clock_timestamp() FROM failed`,
    [
      ...[error, id, deployment.id, deployment.id, revision],
      ...[JSON.stringify(deployment.targets), deployment.request_id, error, revision],
    ],
  );
}

/**
 * SQL, of `endpoints`: whether one is in error because its handlers did not keep running, and no gateway finds them
 * failed any more. Not because of a refused compile, nor of a start of another version, which say nothing about what
 * runs.
 */
const HAS_RECOVERED = `status = 'error' AND desired_deployment_id = confirmed_deployment_id
  AND (SELECT kind = 'crash' OR id = confirmed_deployment_id FROM deployments
        WHERE endpoint_id = endpoints.id ORDER BY created_at DESC LIMIT 1)
  AND NOT EXISTS (SELECT FROM builds
        WHERE builds.id = endpoints.build_id AND builds.state = 'failed' AND builds.error = endpoints.last_error)
  AND NOT EXISTS (SELECT FROM observations JOIN nodes ON nodes.id = node_id
        WHERE endpoint_id = endpoints.id AND state = 'failed' AND ${IS_LIVE_NODE})`;

/** Records that a gateway keeps the handlers of an endpoint running again. Does nothing when others do not. */
export async function reportRecovery(store: Store, id: string, deployment: DesiredDeployment): Promise<void> {
  await store
    .knex('endpoints')
    .where({ id, desired_deployment_id: deployment.id })
    .whereRaw(HAS_RECOVERED)
    .update({ status: 'running', last_error: null });
}

/** A handler that has run this long is not in a crash loop. */
const STABLE = "interval '10 seconds'";

/**
 * Ends crash loops of endpoints that run well on all gateways there are: the gateway that has reported one may have
 * ended since.
 * @returns the endpoints
 */
export async function endCrashLoops({ knex }: Store): Promise<string[]> {
  const { rows } = await knex.raw<{ rows: { id: string }[] }>(
    `UPDATE endpoints SET status = 'running', last_error = NULL
      WHERE ${HAS_RECOVERED}
        AND EXISTS (SELECT FROM observations JOIN nodes ON nodes.id = node_id
                     WHERE endpoint_id = endpoints.id AND state = 'running' AND ${IS_LIVE_NODE}
                       AND observations.version >= endpoints.version AND updated_at < clock_timestamp() - ${STABLE})
      RETURNING id`,
  );
  return rows.map(({ id }) => id);
}

/** What some endpoints should serve, by their ids; without those that should serve nothing. */
export async function deployedTargets(
  store: Store,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly DeployedTarget[]>> {
  const rows = await store
    .knex('endpoints')
    .join('deployments', 'deployments.id', 'desired_deployment_id')
    .whereRaw('endpoints.id = ANY(?)', [[...ids]])
    .select<{ id: string; targets: readonly DeployedTarget[] }[]>('endpoints.id', 'targets');
  return new Map(rows.map(({ id, targets }) => [id, targets]));
}

/** All executables that should run. */
export async function desiredArtifacts(store: Store): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { artifact: string }[] }>(
    `SELECT DISTINCT target->>'artifact' AS artifact
       FROM endpoints JOIN deployments ON deployments.id = endpoints.desired_deployment_id,
            jsonb_array_elements(targets) AS target`,
  );
  return rows.map(({ artifact }) => artifact);
}
