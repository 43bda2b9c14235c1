/** Counts over several tables. */
import type { Scope } from '../model/permission.js';
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';
import { ofVisibleEndpoints, visible } from './visibility.js';

export interface Statistics {
  readonly endpoints_total: number;
  readonly endpoints_running: number;
  readonly requests_handled: number;
}

/** @param scope the hosts that whoever asks may see; requests are then those of the last 30 days */
export async function readStatistics({ knex }: Store, scope?: Scope): Promise<Statistics> {
  const endpoints = () => visible(knex('endpoints'), 'endpoint', scope).count();
  const running = endpoints().whereRaw(
    `desired_deployment_id IS NOT NULL AND EXISTS (
       SELECT FROM observations JOIN nodes ON nodes.id = observations.node_id
        WHERE observations.endpoint_id = endpoints.id AND observations.state = 'running' AND ${IS_LIVE_NODE})`,
  );
  const requests = scope
    ? ofVisibleEndpoints(knex('figures'), 'figures.endpoint_id', scope).select(
        knex.raw(
          'coalesce(sum(status_2xx + status_3xx + status_4xx + status_5xx + status_other), 0)::bigint AS requests',
        ),
      )
    : knex('request_counters').select(knex.raw('coalesce(sum(requests), 0)::bigint AS requests'));
  const { rows } = await knex.raw<{ rows: [Statistics] }>(
    'SELECT (?) AS endpoints_total, (?) AS endpoints_running, (?) AS requests_handled',
    [endpoints(), running, requests] as never[],
  );
  return rows[0];
}
