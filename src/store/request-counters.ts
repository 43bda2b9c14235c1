/** The table `request_counters`: requests handled, by node; those of nodes that are gone are kept as one. */
import type { Store } from './database.js';

/** Adds to the count of a node. */
export async function addRequests(store: Store, nodeId: string, requests: number): Promise<void> {
  await store.knex.raw(
    `INSERT INTO request_counters (node_id, requests) VALUES (?, ?)
     ON CONFLICT (node_id) DO UPDATE SET requests = request_counters.requests + excluded.requests`,
    [nodeId, requests],
  );
}

/** Stands for all nodes that are gone. */
const GONE = '00000000-0000-0000-0000-000000000000';

/** Adds the counts of nodes that are gone up in one row: every start of a gateway is a node of its own. */
export async function foldRequestCounters(store: Store): Promise<void> {
  await store.knex.raw(
    `WITH folded AS (
       DELETE FROM request_counters
        WHERE node_id <> :gone AND NOT EXISTS (SELECT FROM nodes WHERE nodes.id = request_counters.node_id)
       RETURNING requests)
     INSERT INTO request_counters (node_id, requests)
     SELECT :gone, sum(requests) FROM folded HAVING count(*) > 0
     ON CONFLICT (node_id) DO UPDATE SET requests = request_counters.requests + excluded.requests`,
    { gone: GONE },
  );
}
