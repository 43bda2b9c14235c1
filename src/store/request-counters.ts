/** The table `request_counters`: handled requests by node; the counts of deleted nodes are one row. */
import type { Store } from './database.js';

/** Adds to the count of a node. */
export async function addRequests(store: Store, nodeId: string, requests: number): Promise<void> {
  await store.knex.raw(
    `INSERT INTO request_counters (node_id, requests) VALUES (?, ?)
     ON CONFLICT (node_id) DO UPDATE SET requests = request_counters.requests + excluded.requests`,
    [nodeId, requests],
  );
}

/** The node id of the sum of all deleted nodes. */
const DELETED_NODES = '00000000-0000-0000-0000-000000000000';

/** Adds up the counts of deleted nodes in one row: every start of a gateway is a new node. */
export async function foldRequestCounters(store: Store): Promise<void> {
  await store.knex.raw(
    `WITH folded AS (
       DELETE FROM request_counters
        WHERE node_id <> :gone AND NOT EXISTS (SELECT FROM nodes WHERE nodes.id = request_counters.node_id)
       RETURNING requests)
     INSERT INTO request_counters (node_id, requests)
     SELECT :gone, sum(requests) FROM folded HAVING count(*) > 0
     ON CONFLICT (node_id) DO UPDATE SET requests = request_counters.requests + excluded.requests`,
    { gone: DELETED_NODES },
  );
}
