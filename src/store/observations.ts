/** The table `observations`: what each gateway node runs for each endpoint that should run, or has just been stopped. */
import type { Store } from './database.js';

/**
 * What a node observes of an endpoint: its handler serves; its handler cannot be kept running; nothing runs.
 */
export type ObservedState = 'running' | 'failed' | 'stopped';

/** A row. */
export interface Observation {
  readonly node_id: string;
  readonly endpoint_id: string;
  readonly state: ObservedState;
  /** The artifact the state is about; null when stopped. */
  readonly artifact: string | null;
  /** The endpoint version the node has acted on. */
  readonly version: number;
  readonly pid: number | null;
  /** Why it failed, with the last lines the handler printed. */
  readonly error: string | null;
}

/** Writes what a node sees, unless the endpoint or the node is gone by now. */
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
