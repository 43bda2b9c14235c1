/** The table `observations`: the observed state of endpoints on each gateway. */
import type { Store } from './database.js';

/** `running`: the handler serves; `failed`: it cannot be started or kept running; `stopped`: it does not run. */
export type ObservedState = 'running' | 'failed' | 'stopped';

/** A row. */
export interface Observation {
  readonly node_id: string;
  readonly endpoint_id: string;
  readonly state: ObservedState;
  /** The artifact the state is about; null when stopped. */
  readonly artifact: string | null;
  /** The endpoint version that the node has reconciled. */
  readonly version: number;
  readonly pid: number | null;
  /** Why it failed, with the last lines the handler printed. */
  readonly error: string | null;
}

/** Saves an observation, unless the endpoint or the node has been deleted. */
export async function saveObservation(store: Store, observation: Observation): Promise<void> {
  const { node_id, endpoint_id, state, artifact, version, pid, error } = observation;
  await store.knex.raw(
    `INSERT INTO observations (node_id, endpoint_id, state, artifact, version, pid, error)
     SELECT nodes.id, endpoints.id, ?, ?, ?, ?, ? FROM nodes, endpoints WHERE nodes.id = ? AND endpoints.id = ?
     ON CONFLICT (node_id, endpoint_id) DO UPDATE SET
       state = excluded.state, artifact = excluded.artifact, version = excluded.version,
       pid = excluded.pid, error = excluded.error, updated_at = clock_timestamp()`,
    [state, artifact, version, pid, error, node_id, endpoint_id],
  );
  store.announce('observation', endpoint_id);
}
