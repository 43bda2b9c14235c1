/** The table `observations`: the observed state of endpoints on each gateway. */
import { type Store, transaction } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';

/**
 * `running`: the handler serves, or it sleeps, and the next request starts it: then no process is among those that
 * serve; `failed`: it cannot be started or kept running; `stopped`: it does not run.
 */
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
  /** How each version of the desired deployment stands. */
  readonly versions: readonly VersionState[];
  /** Why it failed, with the last lines the handler printed. */
  readonly error: string | null;
}

/** An observation by the node that saves it. */
export type OwnObservation = Omit<Observation, 'node_id'>;

/**
 * Saves observations of a node, at most one of each endpoint, unless the endpoint or the node has been deleted: all of
 * them, or none.
 */
export async function saveObservations(
  store: Store,
  nodeId: string,
  observations: readonly OwnObservation[],
): Promise<void> {
  const columns = [
    observations.map(({ endpoint_id }) => endpoint_id),
    observations.map(({ state }) => state),
    observations.map(({ revision }) => revision),
    observations.map(({ serving }) => JSON.stringify(serving)),
    observations.map(({ versions }) => JSON.stringify(versions)),
    observations.map(({ error }) => error),
  ];
  const save = async (tx: Store) => {
    await tx.knex.raw(
      `INSERT INTO observations (node_id, endpoint_id, state, version, serving, versions, error)
       SELECT nodes.id, endpoints.id, observed.state, observed.version, observed.serving, observed.versions, observed.error
         FROM unnest(?::uuid[], ?::text[], ?::integer[], ?::jsonb[], ?::jsonb[], ?::text[])
                AS observed (endpoint_id, state, version, serving, versions, error)
         JOIN endpoints ON endpoints.id = observed.endpoint_id JOIN nodes ON nodes.id = ?
        ORDER BY endpoints.id
          -- What is being deleted is waited for, and left out.
          FOR KEY SHARE OF endpoints, nodes
       ON CONFLICT (node_id, endpoint_id) DO UPDATE SET
         state = excluded.state, version = excluded.version, serving = excluded.serving, versions = excluded.versions,
         error = excluded.error,
         updated_at = clock_timestamp()`,
      [...columns, nodeId] as never[],
    );
    for (const { endpoint_id } of observations) tx.announce('observation', endpoint_id);
  };
  // Several lock several endpoints, which can be a deadlock with what deletes them.
  if (observations.length === 1) await save(store);
  else await transaction(store, save);
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
