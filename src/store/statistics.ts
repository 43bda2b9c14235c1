/** Counts over several tables. */
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';

export interface Statistics {
  readonly endpoints_total: number;
  readonly endpoints_running: number;
  readonly requests_handled: number;
}

export async function readStatistics(store: Store): Promise<Statistics> {
  const { rows } = await store.knex.raw<{ rows: [Statistics] }>(
    `SELECT
       (SELECT count(*) FROM endpoints) AS endpoints_total,
       (SELECT count(*) FROM endpoints
         WHERE desired_deployment_id IS NOT NULL AND EXISTS (
           SELECT FROM observations JOIN nodes ON nodes.id = observations.node_id
            WHERE observations.endpoint_id = endpoints.id AND observations.state = 'running'
              AND ${IS_LIVE_NODE})) AS endpoints_running,
       (SELECT coalesce(sum(requests), 0)::bigint FROM request_counters) AS requests_handled`,
  );
  return rows[0];
}
