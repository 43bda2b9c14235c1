/**
 * The table `log_usage`: what endpoints take of hours of the log that are over. Where the log is larger than it may be,
 * it says who gives way.
 */
import { type Cut, cutsOf, type HourUsage } from '../model/log-shares.js';
import { isLockTimeout, type Store, transaction } from './database.js';
import { DROP_WAIT_MS, HOUR_MS, type LogPartition, lockPartitions, logPartitions } from './log-partitions.js';
import { ownerOfHost } from './owners.js';

/** After the end of an hour, its last entries may still be written. */
const LATE_MS = 10 * 60_000;
/** About how many bytes are sampled of an hour that is not over. */
const SAMPLED_BYTES = 64 * 1024 * 1024;
/**
 * SQL: what an entry takes, with a part for its head and its indexes, so that short entries do not take more of the
 * disk than they count. Measured with PostgreSQL 18, `pg_total_relation_size` of an hour less the sum of
 * `pg_column_size`, for each entry: 152 bytes for short output, 228 for a request, 261 for an error with the id of a
 * request; 218 where a line has 1,000 characters.
 */
const SIZE = 'pg_column_size(entry) + 200';
/** SQL: the hosts of endpoints, also of those that were deleted. */
const HOSTS = `(
  SELECT id, domain FROM endpoints
   UNION ALL
  SELECT id, domain FROM former_endpoints
   WHERE NOT EXISTS (SELECT FROM endpoints WHERE endpoints.id = former_endpoints.id)) AS hosts`;
/** SQL: who shares room for what an endpoint has written; null: it was deleted when hosts were not kept yet. */
const OWNER = `CASE WHEN hosts.id IS NOT NULL THEN ${ownerOfHost('hosts.domain')} END`;
/** When room is made, so much of it, that this is seldom done. */
const FILLED_TO = 0.95;

/** What was taken away. */
export interface SharedLogs {
  readonly hours: number;
  readonly endpoints: number;
}

/**
 * Makes room in a log that takes more than so many MiB: of endpoints that have more than their share, the oldest
 * entries go. Hours in which is written stay, so the log may be larger until they are over.
 */
export async function shareLogs(store: Store, megabytes: number): Promise<SharedLogs> {
  const room = megabytes * 1024 * 1024;
  const partitions = await logPartitions(store);
  if (partitions.reduce((total, { bytes }) => total + bytes, 0) <= room) return { hours: 0, endpoints: 0 };
  const last = Date.now() - LATE_MS - HOUR_MS;
  // Nothing can be taken away of hours that are not over.
  if (!partitions.some(({ hour }) => hour <= last)) return { hours: 0, endpoints: 0 };
  const usage = await usageOf(store, partitions, last);
  const endpoints = new Set<string>();
  let hours = 0;
  for (const cut of cutsOf(usage, room * FILLED_TO)) {
    const partition = partitions.find(({ hour }) => hour === cut.hour);
    if (!partition || !(await take(store, partition, cut))) continue;
    hours++;
    for (const id of cut.parts.keys()) endpoints.add(id);
  }
  return { hours, endpoints: endpoints.size };
}

/** @param last the newest hour that is over */
async function usageOf(
  store: Store,
  partitions: readonly LogPartition[],
  last: number,
): Promise<HourUsage[]> {
  const over = partitions.filter(({ hour }) => hour <= last);
  const known = await store.knex('log_usage').distinct<{ hour: Date }[]>('hour');
  const measured = new Set(known.map(({ hour }) => hour.getTime()));
  for (const partition of over) if (!measured.has(partition.hour)) await measure(store, partition);
  const { rows } = await store.knex.raw<{ rows: (Omit<HourUsage, 'hour' | 'isOver'> & { hour: Date })[] }>(
    `SELECT hour, endpoint_id AS "endpointId", ${OWNER} AS host, log_usage.bytes
       FROM log_usage LEFT JOIN ${HOSTS} ON hosts.id = endpoint_id`,
  );
  const usage = rows.map((row) => ({ ...row, hour: row.hour.getTime(), isOver: true }));
  const current = await Promise.all(
    partitions.filter(({ hour }) => hour > last).map((partition) => sampled(store, partition)),
  );
  return [...usage, ...current.flat()];
}

/** The size of the rows says how endpoints share what the partition takes, with its indexes. */
async function measure(store: Store, { name, hour, bytes }: LogPartition): Promise<void> {
  await store.knex.raw(
    `INSERT INTO log_usage (hour, endpoint_id, bytes)
     SELECT ?, endpoint_id, (?::float8 * sum(size) / sum(sum(size)) OVER ())::bigint
       FROM (SELECT endpoint_id, ${SIZE} AS size FROM ?? AS entry) AS sizes
      GROUP BY endpoint_id
     ON CONFLICT (hour, endpoint_id) DO UPDATE SET bytes = excluded.bytes`,
    [new Date(hour), bytes, name],
  );
}

async function sampled(store: Store, { name, hour, bytes }: LogPartition): Promise<HourUsage[]> {
  const percent = Math.min(100, (100 * SAMPLED_BYTES) / Math.max(1, bytes));
  const { rows } = await store.knex.raw<{ rows: Omit<HourUsage, 'hour' | 'isOver'>[] }>(
    `SELECT endpoint_id AS "endpointId", min(${OWNER}) AS host,
            (?::float8 * sum(size) / sum(sum(size)) OVER ())::float8 AS bytes
       FROM (SELECT endpoint_id, ${SIZE} AS size
               FROM ?? AS entry TABLESAMPLE SYSTEM (${percent})) AS sizes
       LEFT JOIN ${HOSTS} ON hosts.id = endpoint_id
      GROUP BY endpoint_id`,
    [bytes, name],
  );
  return rows.map((row) => ({ ...row, hour, isOver: false }));
}

/**
 * Takes entries out of a partition: it is written anew without them, which gives their room back. Others read and
 * write the log meanwhile, but for the moment in which one takes the place of the other. (An entry that is written to
 * the hour just then, later than ever, is lost with it.)
 * @returns false when readers do not make way, or another worker was here; it is tried again later
 */
async function take(store: Store, partition: LogPartition, { parts }: Cut): Promise<boolean> {
  const { name, hour } = partition;
  const next = `${name}_next`;
  const [from, to] = [hour, hour + HOUR_MS].map((time) => new Date(time).toISOString());
  try {
    return await transaction(store, async (tx) => {
      const { knex } = tx;
      if (!(await isAlone(tx, partition))) return false;
      await knex.raw('CREATE TABLE ?? (LIKE logs INCLUDING ALL)', [next]);
      await knex.raw(
        `INSERT INTO ?? SELECT entry.* FROM ?? AS entry
           LEFT JOIN (
             SELECT cut.id, first.at, first.writer_id, first.number
               FROM unnest(?::uuid[], ?::float8[]) AS cut (id, part)
               LEFT JOIN LATERAL (
                 SELECT at, writer_id, number FROM ?? WHERE endpoint_id = cut.id ORDER BY at, writer_id, number
                 OFFSET (SELECT greatest(1, ceil(cut.part * count(*)))::bigint FROM ?? WHERE endpoint_id = cut.id)
                 LIMIT 1) AS first ON true) AS cuts ON cuts.id = entry.endpoint_id
          WHERE cuts.id IS NULL
             OR (entry.at, entry.writer_id, entry.number) >= (cuts.at, cuts.writer_id, cuts.number)`,
        [next, name, [...parts.keys()], [...parts.values()], name, name] as never[],
      );
      // What it says of the hour is known then: the log is not looked through while others wait.
      await knex.raw(`ALTER TABLE ?? ADD CONSTRAINT of_hour CHECK (at >= '${from}' AND at < '${to}')`, [
        next,
      ]);
      await knex('log_usage')
        .where({ hour: new Date(hour) })
        .delete();
      const { rows } = await knex.raw<{ rows: [{ bytes: number }] }>(
        'SELECT pg_total_relation_size(?::regclass)::float8 AS bytes',
        [next],
      );
      await measure(tx, { ...partition, name: next, bytes: rows[0].bytes });
      const isEmpty = (await knex(next).first('at')) === undefined;
      await knex.raw(`SET LOCAL lock_timeout = ${DROP_WAIT_MS}`);
      await lockPartitions(tx);
      await knex.raw('DROP TABLE ??', [name]);
      if (isEmpty) await knex.raw('DROP TABLE ??', [next]);
      else {
        await knex.raw('ALTER TABLE ?? RENAME TO ??', [next, name]);
        await knex.raw(`ALTER TABLE logs ATTACH PARTITION ?? FOR VALUES FROM ('${from}') TO ('${to}')`, [
          name,
        ]);
        await knex.raw('ALTER TABLE ?? DROP CONSTRAINT of_hour', [name]);
      }
      return true;
    });
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** Whether no other worker makes room, nor has replaced the partition since it was looked at. */
async function isAlone({ knex }: Store, { name, oid }: LogPartition): Promise<boolean> {
  const { rows } = await knex.raw<{ rows: [{ alone: boolean | null }] }>(
    `SELECT pg_try_advisory_xact_lock(hashtext('edge-gateway log shares')) AND to_regclass(?)::oid = ? AS alone`,
    [name, oid],
  );
  return rows[0].alone === true;
}
