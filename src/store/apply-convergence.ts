/** Which gateways and actor hosts have not taken what an apply has written, or cannot. All of it in one statement. */
import type { WrittenEndpoint, WrittenService } from './applies.js';
import type { Store } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';

/** A node that could not take something. */
export interface Refusal {
  readonly id: string;
  readonly name: string;
  readonly hostname: string;
  readonly error: string | null;
}

export interface Convergence {
  /** One that is to be waited for; undefined: there is none. */
  readonly pending: string | undefined;
  /** How many are to be waited for. */
  readonly left: number;
  readonly refusals: readonly Refusal[];
}

/** What a node makes of an endpoint or a service. */
interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly hostname: string | null;
  readonly is_seen: boolean;
  readonly has_failed: boolean;
  readonly error: string | null;
}

/**
 * What gateways make of endpoints. One that was deleted or deployed anew since is not waited for; while no gateway is
 * alive, all others are.
 */
export async function convergenceOfEndpoints(
  store: Store,
  written: readonly WrittenEndpoint[],
): Promise<Convergence> {
  const { rows } = await store.knex.raw<{ rows: NodeRow[] }>(
    `SELECT endpoints.id, endpoints.name, gateways.hostname, observations.error,
            observations.version >= written.revision IS TRUE AS is_seen,
            observations.version >= written.revision IS TRUE AND NOT written.was_failed
              AND (observations.state = 'failed' OR observations.error IS NOT NULL) AS has_failed
       FROM unnest(?::uuid[], ?::uuid[], ?::integer[], ?::boolean[], ?::boolean[])
              AS written (id, deployment, revision, is_stopped, was_failed)
       JOIN endpoints ON endpoints.id = written.id
       LEFT JOIN (SELECT id, hostname FROM nodes WHERE kind = 'gateway' AND ${IS_LIVE_NODE}) AS gateways ON true
       LEFT JOIN observations ON observations.node_id = gateways.id AND observations.endpoint_id = endpoints.id
      WHERE CASE WHEN written.is_stopped THEN endpoints.desired_deployment_id IS NULL
                 WHEN written.deployment IS NULL THEN endpoints.desired_deployment_id IS NOT NULL
                 ELSE endpoints.desired_deployment_id = written.deployment END
        AND (observations.version >= written.revision IS NOT TRUE OR observations.state = 'failed'
             OR observations.error IS NOT NULL)`,
    [
      written.map(({ id }) => id),
      written.map(({ deployment }) => deployment),
      written.map(({ revision }) => revision),
      written.map(({ isStopped }) => isStopped),
      written.map(({ wasFailed }) => wasFailed),
    ] as never[],
  );
  return convergenceOf(rows);
}

/** What actor hosts make of services. */
export async function convergenceOfServices(
  store: Store,
  written: readonly WrittenService[],
): Promise<Convergence> {
  const { rows } = await store.knex.raw<{ rows: NodeRow[] }>(
    `SELECT services.id, services.name, hosts.hostname, observed.message AS error,
            observed.version >= written.version IS TRUE AS is_seen,
            observed.version >= written.version IS TRUE AND observed.state = 'failed' AS has_failed
       FROM unnest(?::uuid[], ?::integer[]) AS written (id, version)
       JOIN services ON services.id = written.id
       JOIN (SELECT id, hostname FROM nodes WHERE kind = 'actor-host' AND ${IS_LIVE_NODE}) AS hosts ON true
       LEFT JOIN service_observations AS observed ON observed.node_id = hosts.id AND observed.service_id = services.id
      WHERE services.activated_at IS NOT NULL
        AND (observed.version >= written.version IS NOT TRUE OR observed.state = 'failed')`,
    [written.map(({ id }) => id), written.map(({ version }) => version)] as never[],
  );
  return convergenceOf(rows);
}

/** The names of active services that an apply has written and that cannot be reached, or that no actor host runs. */
export async function awayServices(store: Store, written: readonly WrittenService[]): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { name: string }[] }>(
    `SELECT DISTINCT services.name FROM services
       LEFT JOIN (SELECT id FROM nodes WHERE kind = 'actor-host' AND ${IS_LIVE_NODE}) AS hosts ON true
       LEFT JOIN service_observations AS observed ON observed.node_id = hosts.id AND observed.service_id = services.id
      WHERE services.id = ANY(?) AND services.activated_at IS NOT NULL AND observed.state IS DISTINCT FROM 'connected'
      ORDER BY services.name`,
    [written.map(({ id }) => id)] as never[],
  );
  return rows.map(({ name }) => name);
}

function convergenceOf(rows: readonly NodeRow[]): Convergence {
  const pending = new Set(rows.filter(({ is_seen }) => !is_seen).map(({ id }) => id));
  const refusals = rows.filter(({ has_failed }) => has_failed);
  return {
    pending: pending.values().next().value,
    left: pending.size,
    refusals: refusals.map(({ id, name, hostname, error }) => ({
      id,
      name,
      hostname: hostname ?? '',
      error,
    })),
  };
}
