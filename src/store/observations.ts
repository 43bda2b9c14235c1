/** The table `observations`: the observed state of endpoints on each gateway. */
import type { Store } from './database.js';

/** `running`: the handler serves; `failed`: it cannot be started or kept running; `stopped`: it does not run. */
export type ObservedState = 'running' | 'failed' | 'stopped';

/** A process, and the version of the endpoint that it serves. */
export interface ServingVersion {
  readonly version: number;
  readonly pid: number;
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
  /** Why it failed, with the last lines the handler printed. */
  readonly error: string | null;
}

/** Saves an observation, unless the endpoint or the node has been deleted. */
export async function saveObservation(store: Store, observation: Observation): Promise<void> {
  const { node_id, endpoint_id, state, revision, serving, error } = observation;
  await store.knex.raw(
    `INSERT INTO observations (node_id, endpoint_id, state, version, serving, error)
     SELECT nodes.id, endpoints.id, ?, ?, ?, ? FROM nodes, endpoints WHERE nodes.id = ? AND endpoints.id = ?
     ON CONFLICT (node_id, endpoint_id) DO UPDATE SET
       state = excluded.state, version = excluded.version, serving = excluded.serving, error = excluded.error,
       updated_at = clock_timestamp()`,
    [state, revision, JSON.stringify(serving), error, node_id, endpoint_id],
  );
  store.announce('observation', endpoint_id);
}
