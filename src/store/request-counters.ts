/** The table `request_counters`: requests handled, by node, kept for ever. */
import type { Store } from './database.js';

/** Adds to the count of a node. */
export async function addRequests(store: Store, nodeId: string, requests: number): Promise<void> {
  await store.knex.raw(
    `INSERT INTO request_counters (node_id, requests) VALUES (?, ?)
     ON CONFLICT (node_id) DO UPDATE SET requests = request_counters.requests + excluded.requests`,
    [nodeId, requests],
  );
}
