/** The table `observations`: the observed state of endpoints on each gateway. */
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';

/** `running`: the handler serves; `failed`: it cannot be started or kept running; `stopped`: it does not run. */
export type ObservedState = 'running' | 'failed' | 'stopped';

/** A process, and the version of the endpoint that it serves. */
export interface ServingVersion {
  readonly version: number;
  readonly pid: number;
}

/** How a version of the desired deployment stands. */
export interface VersionState {
  readonly version: number;
  readonly state: 'starting' | 'running' | 'failed';
  /** Why it cannot be started or kept running. */
  readonly error: string | null;
}

/** A row. */
export interface Observation {
  readonly node_id: string;
  readonly endpoint_id: string;
  readonly state: ObservedState;
  /** The endpoint revision that the node has reconciled. */
  readonly revision: number;
  /** The processes that serve. */
  readonly serving: readonly ServingVersion[];
  /** Of the desired deployment. */
  readonly versions: readonly VersionState[];
  /** Why it failed, with the last lines the handler printed. */
  readonly error: string | null;
}

/** Saves an observation, unless the endpoint or the node has been deleted. */
export async function saveObservation(store: Store, observation: Observation): Promise<void> {
  const { node_id, endpoint_id, state, revision, serving, versions, error } = observation;
  await store.knex.raw(
    `INSERT INTO observations (node_id, endpoint_id, state, version, serving, versions, error)
     SELECT nodes.id, endpoints.id, ?, ?, ?, ?, ? FROM nodes, endpoints WHERE nodes.id = ? AND endpoints.id = ?
     ON CONFLICT (node_id, endpoint_id) DO UPDATE SET
       state = excluded.state, version = excluded.version, serving = excluded.serving, versions = excluded.versions,
       error = excluded.error, updated_at = clock_timestamp()`,
    [state, revision, JSON.stringify(serving), JSON.stringify(versions), error, node_id, endpoint_id],
  );
  store.announce('observation', endpoint_id);
}

/** Endpoints by their host, or by their ids. */
export type EndpointSelection = { readonly host: string } | { readonly ids: readonly string[] };

/** One of some endpoints that should run, and that a live gateway has not reconciled; undefined when there is none. */
export async function unobservedEndpoint(
  store: Store,
  selection: EndpointSelection,
): Promise<string | undefined> {
  const [condition, value] =
    'host' in selection
      ? ['endpoints.domain = ?', selection.host]
      : ['endpoints.id = ANY(?)', [...selection.ids]];
  const { rows } = await store.knex.raw<{ rows: { id: string }[] }>(
    `SELECT endpoints.id FROM endpoints
      CROSS JOIN (SELECT id FROM nodes WHERE kind = 'gateway' AND ${IS_LIVE_NODE}) AS gateways
       LEFT JOIN observations ON observations.node_id = gateways.id AND observations.endpoint_id = endpoints.id
      WHERE ${condition} AND endpoints.desired_deployment_id IS NOT NULL
        AND (observations.version IS NULL OR observations.version < endpoints.version) LIMIT 1`,
    [value] as never[],
  );
  return rows[0]?.id;
}
