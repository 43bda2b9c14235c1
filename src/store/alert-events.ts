/**
 * What alerts watch for becomes events: each begins once, and ends once. The webhooks that tell of it are rows too, so
 * that none is lost.
 */
import type { AlertCondition } from '../model/alert-condition.js';
import { type Store, transaction } from './database.js';
import { IS_LIVE_NODE } from './nodes.js';
import { ownerOfHost } from './owners.js';

/** Fewer requests say nothing about a rate. */
const MIN_REQUESTS = 10;
/** An event is over when the rate is below this part of its limit: one at the limit does not begin and end for ever. */
const OVER_BELOW = 0.8;
const KEPT_FOR = "interval '30 days'";
const LOCK = "hashtext('edge-gateway alerts')";

const OF_ENDPOINTS = `(scope IS NULL OR scope->>'endpoint_id' = endpoints.id::text
    OR scope->>'domain' = endpoints.domain)`;
const ENDPOINT = `jsonb_build_object('endpoint_id', endpoints.id, 'name', endpoints.name, 'domain', endpoints.domain,
    'method', endpoints.method, 'route', endpoints.route)`;

/** What is the case for which alert: its id, the endpoint or service, what is told of it, and in words. */
const CURRENT: Readonly<Record<AlertCondition, string>> = {
  crash_loop: `
    SELECT alerts.id AS alert_id, endpoints.id AS subject_id, ${ENDPOINT} AS subject,
           coalesce(endpoints.last_error, newest.error, 'The handler keeps crashing.') AS message
      FROM alerts JOIN endpoints ON ${OF_ENDPOINTS}
           JOIN LATERAL (SELECT kind, error FROM deployments WHERE endpoint_id = endpoints.id
                          ORDER BY created_at DESC LIMIT 1) AS newest ON newest.kind = 'crash'
     WHERE condition = 'crash_loop' AND alerts.enabled AND desired_deployment_id IS NOT NULL
       AND (endpoints.status = 'error' OR EXISTS (
              SELECT FROM observations JOIN nodes ON nodes.id = node_id
               WHERE endpoint_id = endpoints.id AND state = 'failed' AND ${IS_LIVE_NODE}))`,
  error_rate: `
    SELECT alerts.id, endpoints.id, ${ENDPOINT},
           'In ' || minutes || ' min ' || errors || ' of ' || requests || ' requests had an error ('
             || round(100.0 * errors / requests, 1) || ' %, the limit is ' || percent || ' %).'
      FROM alerts JOIN endpoints ON ${OF_ENDPOINTS}
           JOIN LATERAL (
             SELECT sum(status_5xx)::bigint AS errors,
                    sum(status_2xx + status_3xx + status_4xx + status_5xx + status_other)::bigint AS requests
               FROM figures WHERE endpoint_id = endpoints.id AND step = 60
                AND at > now() - (minutes + 1) * interval '1 minute') AS counted
             ON requests >= ${MIN_REQUESTS} AND errors * 100 >= requests * percent
     WHERE condition = 'error_rate' AND alerts.enabled`,
  service_unreachable: `
    SELECT alerts.id, services.id,
           jsonb_build_object('service_id', services.id, 'name', services.name, 'type', services.service_type),
           min(service_observations.message)
      FROM alerts JOIN services ON scope IS NULL OR scope->>'service_id' = services.id::text
           JOIN service_observations ON service_id = services.id AND state IN ('unreachable', 'failed')
           JOIN nodes ON nodes.id = service_observations.node_id AND ${IS_LIVE_NODE}
     WHERE condition = 'service_unreachable' AND alerts.enabled AND services.activated_at IS NOT NULL
     GROUP BY alerts.id, services.id`,
  build_failed: `
    SELECT alerts.id, endpoints.id, ${ENDPOINT} || jsonb_build_object('build_id', builds.id),
           coalesce(builds.error, 'The build has failed.')
      FROM alerts JOIN endpoints ON ${OF_ENDPOINTS} JOIN builds ON builds.id = endpoints.build_id
     WHERE condition = 'build_failed' AND alerts.enabled
       AND (builds.state = 'failed'
            -- Whether it is over is known when the next build has ended.
            OR builds.state IN ('queued', 'running') AND EXISTS (
                 SELECT FROM alert_events WHERE alert_id = alerts.id AND subject_id = endpoints.id
                    AND ended_at IS NULL))`,
  certificate_expiry: `
    SELECT alerts.id, domains.id,
           jsonb_build_object('domain_id', domains.id, 'name', domains.name, 'domain', domains.host,
                              'expires_at', certificates.expires_at),
           CASE WHEN certificates.expires_at <= now() THEN 'The certificate of ' || domains.host || ' has expired.'
                ELSE 'The certificate of ' || domains.host || ' expires in '
                       || ceil(extract(epoch FROM certificates.expires_at - now()) / 86400) || ' days.' END
      FROM alerts JOIN domains ON scope IS NULL OR scope->>'domain' = domains.host
           JOIN certificates ON domain_id = domains.id AND expires_at < now() + days * interval '1 day'
     WHERE condition = 'certificate_expiry' AND alerts.enabled`,
};

/**
 * Open events that are not over, though nobody reports any more what they are about: for an end, a live node has to
 * report that all is well, or nothing of the kind may be wanted any more.
 */
const HELD: Readonly<Partial<Record<AlertCondition, string>>> = {
  crash_loop: `
    SELECT alert_id, subject_id
      FROM alert_events JOIN alerts ON alerts.id = alert_id
           JOIN endpoints ON endpoints.id = subject_id AND ${OF_ENDPOINTS}
           JOIN LATERAL (SELECT kind FROM deployments WHERE endpoint_id = endpoints.id
                          ORDER BY created_at DESC LIMIT 1) AS newest ON newest.kind = 'crash'
     WHERE condition = 'crash_loop' AND alerts.enabled AND ended_at IS NULL AND desired_deployment_id IS NOT NULL
       AND NOT EXISTS (
             SELECT FROM observations JOIN nodes ON nodes.id = node_id
              WHERE endpoint_id = endpoints.id AND state = 'running' AND ${IS_LIVE_NODE})`,
  error_rate: `
    SELECT alert_id, subject_id
      FROM alert_events JOIN alerts ON alerts.id = alert_id
           JOIN endpoints ON endpoints.id = subject_id AND ${OF_ENDPOINTS}
           JOIN LATERAL (
             SELECT sum(status_5xx)::bigint AS errors,
                    sum(status_2xx + status_3xx + status_4xx + status_5xx + status_other)::bigint AS requests
               FROM figures WHERE endpoint_id = endpoints.id AND step = 60
                AND at > now() - (minutes + 1) * interval '1 minute') AS counted
             ON requests > 0 AND errors * 100 >= requests * percent * ${OVER_BELOW}
     WHERE condition = 'error_rate' AND alerts.enabled AND ended_at IS NULL`,
  service_unreachable: `
    SELECT alert_id, subject_id
      FROM alert_events JOIN alerts ON alerts.id = alert_id
           JOIN services ON services.id = subject_id AND services.activated_at IS NOT NULL
            AND (scope IS NULL OR scope->>'service_id' = services.id::text)
           LEFT JOIN LATERAL (
             SELECT bool_and(state = 'connected') AS is_good
               FROM service_observations JOIN nodes ON nodes.id = node_id
              WHERE service_id = services.id AND ${IS_LIVE_NODE}) AS observed ON true
     WHERE condition = 'service_unreachable' AND alerts.enabled AND ended_at IS NULL AND is_good IS NOT TRUE`,
};

/** How many events have begun, and ended. */
export interface ChangedEvents {
  readonly began: number;
  readonly ended: number;
}

/** Compares what is the case with the events that are open. Runs on one worker at a time. */
export async function updateAlertEvents(store: Store): Promise<ChangedEvents> {
  return transaction(store, async ({ knex }) => {
    const { rows: locks } = await knex.raw<{ rows: { locked: boolean }[] }>(
      `SELECT pg_try_advisory_xact_lock(${LOCK}) AS locked`,
    );
    if (!locks[0]?.locked) return { began: 0, ended: 0 };
    const { rows } = await knex.raw<{ rows: ChangedEvents[] }>(
      `WITH current AS MATERIALIZED (${Object.values(CURRENT).join(' UNION ALL ')}),
       held AS MATERIALIZED (${Object.values(HELD).join(' UNION ALL ')}),
       began AS (
         INSERT INTO alert_events (alert_id, subject_id, subject, message)
         SELECT alert_id, subject_id, subject, left(message, 4096) FROM current
         ON CONFLICT (alert_id, subject_id) WHERE ended_at IS NULL DO NOTHING
         RETURNING id),
       ended AS (
         UPDATE alert_events SET ended_at = clock_timestamp()
          WHERE ended_at IS NULL AND NOT EXISTS (
                  SELECT FROM (SELECT alert_id, subject_id FROM current UNION ALL SELECT * FROM held) AS going_on
                   WHERE going_on.alert_id = alert_events.alert_id AND going_on.subject_id = alert_events.subject_id)
         RETURNING id),
       deliveries AS (
         INSERT INTO alert_deliveries (event_id, status)
         SELECT id, 'firing' FROM began UNION ALL SELECT id, 'resolved' FROM ended)
       SELECT (SELECT count(*) FROM began) AS began, (SELECT count(*) FROM ended) AS ended`,
    );
    return rows[0] ?? { began: 0, ended: 0 };
  });
}

/** A webhook that is to be sent; `attempts` says how often that was tried. */
export interface DueDelivery {
  readonly id: string;
  readonly attempts: number;
}

/** SQL: who takes turns for the webhooks of an alert: the domain that it is about, or all that have none. */
const OWNER = `(
  SELECT ${ownerOfHost('about.host')} FROM (
    SELECT coalesce(
      alerts.scope->>'domain',
      (SELECT domain FROM endpoints WHERE endpoints.id = (alerts.scope->>'endpoint_id')::uuid),
      (SELECT services.domains[1] FROM services WHERE services.id = (alerts.scope->>'service_id')::uuid),
      '*') AS host) AS about)`;

/** SQL: webhooks whose time has come, with their owners. That an event has ended is told after that it has begun. */
const DUE = `
  SELECT due.id, due.attempts, due.next_at, ${OWNER} AS owner
    FROM alert_deliveries AS due JOIN alert_events AS event ON event.id = due.event_id
         JOIN alerts ON alerts.id = event.alert_id
   WHERE due.state = 'queued' AND due.next_at <= clock_timestamp()
     AND NOT (due.status = 'resolved' AND EXISTS (
                SELECT FROM alert_deliveries AS first
                 WHERE first.event_id = due.event_id AND first.status = 'firing' AND first.state = 'queued'))`;

/** Webhooks whose time has come: the first of each owner, then the second of each, and so on. */
export async function dueDeliveries({ knex }: Store, limit: number): Promise<DueDelivery[]> {
  const { rows } = await knex.raw<{ rows: DueDelivery[] }>(
    `SELECT id, attempts FROM (${DUE}) AS due
      ORDER BY row_number() OVER (PARTITION BY owner ORDER BY next_at), next_at LIMIT ?`,
    [limit],
  );
  return rows;
}

/** The webhook that was due first, of each owner that is not among the busy ones, if that was so long ago. */
export async function deliveriesOfWaitingOwners(
  { knex }: Store,
  sinceMs: number,
  limit: number,
  busy: readonly string[],
): Promise<DueDelivery[]> {
  const { rows } = await knex.raw<{ rows: DueDelivery[] }>(
    `SELECT id, attempts FROM (
       SELECT DISTINCT ON (owner) * FROM (${DUE}) AS due
        WHERE next_at < clock_timestamp() - :sinceMs * interval '1 ms' AND owner <> ALL(:busy)
        ORDER BY owner, next_at) AS firsts
      ORDER BY next_at LIMIT :limit`,
    { sinceMs, limit, busy: [...busy] } as never,
  );
  return rows;
}

/** Who takes turns for a webhook; undefined when it is not there any more. */
export async function ownerOfDelivery({ knex }: Store, id: string): Promise<string | undefined> {
  const { rows } = await knex.raw<{ rows: { owner: string }[] }>(
    `SELECT ${OWNER} AS owner FROM alert_deliveries JOIN alert_events AS event ON event.id = event_id
            JOIN alerts ON alerts.id = alert_id WHERE alert_deliveries.id = ?`,
    [id],
  );
  return rows[0]?.owner;
}

/** A claimed webhook: what it tells, and where to. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly status: 'firing' | 'resolved';
  readonly attempts: number;
  readonly alert_id: string;
  readonly condition: AlertCondition;
  readonly url_encrypted: string;
  readonly secret_encrypted: string;
  readonly event_id: string;
  readonly subject: Readonly<Record<string, unknown>>;
  readonly message: string;
  readonly began_at: Date;
  readonly ended_at: Date | null;
}

/**
 * Claims an attempt; it is due again after `retryMs`, unless it is settled before.
 * @returns undefined when it was claimed by another worker, or is not there any more
 */
export async function claimDelivery(
  { knex }: Store,
  { id, attempts }: DueDelivery,
  retryMs: number,
): Promise<ClaimedDelivery | undefined> {
  const { rows } = await knex.raw<{ rows: ClaimedDelivery[] }>(
    `UPDATE alert_deliveries AS delivery
        SET attempts = attempts + 1, next_at = clock_timestamp() + ? * interval '1 millisecond'
       FROM alert_events AS event JOIN alerts ON alerts.id = event.alert_id
      WHERE delivery.id = ? AND attempts = ? AND delivery.state = 'queued' AND event.id = delivery.event_id
      RETURNING delivery.id, delivery.status, delivery.attempts, alerts.id AS alert_id, condition, url_encrypted,
                secret_encrypted, event.id AS event_id, subject, message, began_at, ended_at`,
    [retryMs, id, attempts],
  );
  return rows[0];
}

/** What came of an attempt. */
export interface DeliveryResult {
  readonly state: 'queued' | 'sent' | 'failed';
  readonly status: number | null;
  readonly error: string | null;
}

export async function settleDelivery(
  { knex }: Store,
  { id, attempts }: DueDelivery,
  { state, status, error }: DeliveryResult,
): Promise<void> {
  await knex('alert_deliveries')
    .where({ id, attempts, state: 'queued' })
    .update({ state, last_status: status, last_error: error });
}

/** Deletes events that ended long ago. */
export async function deleteOldAlertEvents({ knex }: Store): Promise<void> {
  await knex.raw(`DELETE FROM alert_events WHERE ended_at < now() - ${KEPT_FOR}`);
}
