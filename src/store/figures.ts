/**
 * The table `figures`: what became of requests and what handlers used, by the minute. After a day minutes are added up
 * to ten of them, after a week to hours, and after 30 days they are deleted.
 */
import type { Scope } from '../model/permission.js';
import type { Store } from './database.js';
import { ofVisibleEndpoints } from './visibility.js';

/** The endpoint id of the figures of all endpoints together. */
export const ALL_ENDPOINTS = '00000000-0000-0000-0000-000000000000';

/** One minute of a version of an endpoint, on one gateway. */
export interface Figures {
  readonly endpoint_id: string;
  /** When the minute begins, milliseconds since 1970. */
  readonly at: number;
  /** 0: no handler was asked. */
  readonly version: number;
  readonly status_2xx: number;
  readonly status_3xx: number;
  readonly status_4xx: number;
  readonly status_5xx: number;
  readonly status_other: number;
  readonly restarts: number;
  readonly cpu_seconds: number;
  /** The most requests of the endpoint at a time. */
  readonly in_flight: number;
  /** The most memory. */
  readonly memory_bytes: number;
  /** Requests by duration, see `src/model/durations.ts`. */
  readonly buckets: readonly number[];
  readonly counts: readonly number[];
}

/** The steps that are kept, from the finest on: up to which age, seconds. */
export const KEPT = [
  { step: 60, age: 24 * 3600 },
  { step: 600, age: 7 * 24 * 3600 },
  { step: 3600, age: 30 * 24 * 3600 },
] as const;

const SUMS = [
  ...['status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'status_other'],
  ...['restarts', 'cpu_seconds'],
];
const MAXIMA = ['in_flight', 'memory_bytes'];
const COUNTS = [...SUMS, ...MAXIMA, 'buckets', 'counts'];

/** Writes the minutes of a gateway, in place of what it has written of them before. */
export async function saveFigures(
  { knex }: Store,
  nodeId: string,
  figures: readonly Figures[],
): Promise<void> {
  const columns = ['endpoint_id', 'version', ...COUNTS].join(', ');
  await knex.raw(
    `INSERT INTO figures (step, node_id, at, ${columns})
     SELECT 60, ?, to_timestamp(row.at / 1000.0), ${columns}
       FROM jsonb_to_recordset(?) AS row (
         endpoint_id uuid, at bigint, version integer, status_2xx bigint, status_3xx bigint, status_4xx bigint,
         status_5xx bigint, status_other bigint, restarts integer, cpu_seconds double precision, in_flight integer,
         memory_bytes bigint, buckets smallint[], counts bigint[])
     ON CONFLICT (endpoint_id, step, at, version, node_id) DO UPDATE
       SET ${COUNTS.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    [nodeId, JSON.stringify(figures)],
  );
}

/** Adds up what is old, and deletes what is too old. */
export async function condenseFigures(store: Store): Promise<void> {
  for (const [at, { step, age }] of KEPT.entries()) {
    const next = KEPT[at + 1];
    if (next) while (await addUpOldest(store, step, age, next.step));
    else
      await store.knex.raw(`DELETE FROM figures WHERE step = ? AND at < now() - ? * interval '1 second'`, [
        step,
        age,
      ]);
  }
}

/**
 * Adds up the oldest ones of a step that become one of a longer step.
 * @returns false when there are none that are old enough as a whole
 */
async function addUpOldest({ knex }: Store, step: number, age: number, longer: number): Promise<boolean> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `WITH oldest AS (
       SELECT date_bin(:longer * interval '1 second', min(at), to_timestamp(0)) AS begins
         FROM figures WHERE step = :step),
     old AS (
       DELETE FROM figures USING oldest
        WHERE step = :step AND begins + :oldest * interval '1 second' <= now()
          AND at >= begins AND at < begins + :longer * interval '1 second'
       RETURNING figures.*, begins),
     durations AS (
       SELECT endpoint_id, version, node_id, array_agg(bucket ORDER BY bucket) AS buckets,
              array_agg(count ORDER BY bucket) AS counts
         FROM (SELECT endpoint_id, version, node_id, bucket, sum(count)::bigint AS count
                 FROM old, unnest(buckets, counts) AS counted (bucket, count)
                GROUP BY endpoint_id, version, node_id, bucket) AS added
        GROUP BY endpoint_id, version, node_id)
     INSERT INTO figures (endpoint_id, version, node_id, step, at, ${[...SUMS, ...MAXIMA].join(', ')}, buckets, counts)
     SELECT endpoint_id, version, node_id, :longer, begins,
            ${SUMS.map((column) => `sum(${column})`).join(', ')},
            ${MAXIMA.map((column) => `max(${column})`).join(', ')},
            coalesce(min(durations.buckets), '{}'), coalesce(min(durations.counts), '{}')
       FROM old LEFT JOIN durations USING (endpoint_id, version, node_id)
      GROUP BY endpoint_id, version, node_id, begins
     ON CONFLICT (endpoint_id, step, at, version, node_id) DO UPDATE
       SET ${SUMS.map((column) => `${column} = figures.${column} + excluded.${column}`).join(', ')},
           ${MAXIMA.map((column) => `${column} = greatest(figures.${column}, excluded.${column})`).join(', ')},
           buckets = figures.buckets || excluded.buckets, counts = figures.counts || excluded.counts`,
    { step, longer, oldest: longer + age },
  );
  return rowCount > 0;
}

/** Which figures are wanted. */
export interface SeriesFilter {
  /** Id of the endpoint; with neither this nor a domain: figures of all endpoints together. */
  readonly endpointId?: string | undefined;
  /** The host of the endpoints, as it is now. */
  readonly domain?: string | undefined;
  /** A version of the endpoint. */
  readonly version?: number | undefined;
  readonly since: Date;
  readonly until: Date;
  /** Seconds. */
  readonly step: number;
  /** The hosts that whoever asks may see: of all endpoints are only theirs. */
  readonly scope?: Scope;
}

/** What is known of one step; steps of which nothing is known are left out. */
export interface SeriesPoint extends Omit<Figures, 'endpoint_id' | 'version' | 'at'> {
  /** Seconds since 1970. */
  readonly at: number;
}

/**
 * Reads figures, by steps. Sums are of all gateways and versions. `in_flight` is that of the endpoint and the gateway
 * with the most; `memory_bytes` adds up the most that each handler has had.
 */
export async function readSeries({ knex }: Store, filter: SeriesFilter): Promise<SeriesPoint[]> {
  const { endpointId, domain, version, since, until, step, scope } = filter;
  const chosen = knex('figures')
    .whereIn(
      'step',
      KEPT.map((kept) => kept.step),
    )
    .where('at', '>=', since)
    .where('at', '<', until)
    .select('*', knex.raw(`date_bin(? * interval '1 second', at, to_timestamp(0)) AS bin`, [step]));
  if (domain !== undefined) chosen.whereIn('endpoint_id', knex('endpoints').select('id').where({ domain }));
  else if (endpointId !== undefined || !scope) chosen.where({ endpoint_id: endpointId ?? ALL_ENDPOINTS });
  ofVisibleEndpoints(chosen, 'figures.endpoint_id', scope);
  if (version !== undefined) chosen.where({ version });
  const { rows } = await knex.raw<{ rows: SeriesPoint[] }>(
    `WITH chosen AS MATERIALIZED (?),
     handlers AS (
       SELECT bin, ${SUMS.map((column) => `sum(${column}) AS ${column}`).join(', ')},
              max(in_flight) AS in_flight, max(memory_bytes) AS memory_bytes
         FROM chosen GROUP BY bin, endpoint_id, version, node_id),
     durations AS (
       SELECT bin, array_agg(bucket ORDER BY bucket) AS buckets,
              array_agg(count ORDER BY bucket) AS counts
         FROM (SELECT bin, bucket, sum(count)::double precision AS count
                 FROM chosen, unnest(buckets, counts) AS counted (bucket, count)
                GROUP BY bin, bucket) AS added
        GROUP BY bin)
     SELECT extract(epoch FROM bin)::bigint AS at,
            ${SUMS.map((column) => `sum(${column})::double precision AS ${column}`).join(', ')},
            max(in_flight) AS in_flight, sum(memory_bytes)::bigint AS memory_bytes,
            coalesce(min(durations.buckets), '{}') AS buckets, coalesce(min(durations.counts), '{}') AS counts
       FROM handlers LEFT JOIN durations USING (bin)
      GROUP BY bin ORDER BY bin`,
    [chosen],
  );
  return rows;
}
