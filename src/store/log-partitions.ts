/** The partitions of the table `logs`, one for each hour (UTC). Old entries are dropped with theirs. */
import { isLockTimeout, type Store, transaction } from './database.js';

export const HOUR_MS = 3_600_000;
/** Whoever makes or drops a partition holds this lock. */
const LOCK = `hashtext('edge-gateway logs')`;
/** Readers wait behind a drop that waits for a reader: not for longer than this. */
export const DROP_WAIT_MS = 2_000;

/** Until the end of the transaction, nobody else makes or drops a partition. */
export async function lockPartitions({ knex }: Pick<Store, 'knex'>): Promise<void> {
  await knex.raw(`SELECT pg_advisory_xact_lock(${LOCK})`);
}

/** The hour of a time, milliseconds since 1970. */
export function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

/** Makes the partition of an hour, unless it is there. */
export async function ensureLogPartition(store: Store, hour: number): Promise<void> {
  await transaction(store, async ({ knex }) => {
    await lockPartitions({ knex });
    const name = partitionOf(hour);
    const { rows } = await knex.raw<{ rows: { exists: boolean }[] }>(
      'SELECT to_regclass(?) IS NOT NULL AS exists',
      [name],
    );
    if (rows[0]?.exists) return;
    // Made and attached: CREATE TABLE ... PARTITION OF would wait for all readers and writers of the others.
    await knex.raw('CREATE TABLE ?? (LIKE logs INCLUDING ALL)', [name]);
    const [from, to] = [hour, hour + HOUR_MS].map((time) => new Date(time).toISOString());
    await knex.raw(`ALTER TABLE logs ATTACH PARTITION ?? FOR VALUES FROM ('${from}') TO ('${to}')`, [name]);
  });
}

/** What the partition of an hour takes, bytes; 0 when there is none. @param hour this one, when it is left out */
export async function sizeOfLogPartition({ knex }: Store, hour?: number): Promise<number> {
  const { rows } = await knex.raw<{ rows: { bytes: number | null }[] }>(
    `SELECT pg_total_relation_size(to_regclass(coalesce(?, ${OF_THIS_HOUR}))) AS bytes`,
    [hour === undefined ? null : partitionOf(hour)],
  );
  return rows[0]?.bytes ?? 0;
}

/** The partition of an hour. */
export interface LogPartition {
  readonly name: string;
  /** When it begins, milliseconds since 1970. */
  readonly hour: number;
  /** What it takes with its indexes. */
  readonly bytes: number;
  readonly oid: number;
}

/** All partitions, the oldest first. */
export async function logPartitions({ knex }: Store): Promise<LogPartition[]> {
  const { rows } = await knex.raw<{ rows: Omit<LogPartition, 'hour'>[] }>(
    `SELECT inhrelid::regclass::text AS name, pg_total_relation_size(inhrelid)::float8 AS bytes, inhrelid AS oid
       FROM pg_inherits WHERE inhparent = 'logs'::regclass ORDER BY name`,
  );
  return rows.map((row) => ({ ...row, hour: hourIn(row.name) }));
}

/** Drops partitions that are older than so many days. @returns how many */
export async function dropOldLogs(store: Store, days: number): Promise<number> {
  const oldest = hourOf(Date.now() - days * 24 * HOUR_MS);
  let dropped = 0;
  for (const { name, hour } of await logPartitions(store)) {
    if (hour >= oldest || !(await drop(store, name))) break;
    dropped++;
  }
  await store.knex('log_usage').where('hour', '<', new Date(oldest)).delete();
  await store.knex('former_endpoints').where('deleted_at', '<', new Date(oldest)).delete();
  await forgetWriters(store);
  return dropped;
}

/** @returns false when readers do not make way; it is tried again later */
async function drop(store: Store, name: string): Promise<boolean> {
  try {
    await transaction(store, async ({ knex }) => {
      await lockPartitions({ knex });
      await knex.raw(`SET LOCAL lock_timeout = ${DROP_WAIT_MS}`);
      await knex.raw('DROP TABLE IF EXISTS ??', [name]);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/**
 * Forgets gateways that have ended, and whose entries were dropped. Not one that wrote a moment ago, although its node
 * has expired: while this waits for its row, it may write entries that the look at `logs` does not see.
 */
async function forgetWriters({ knex }: Store): Promise<void> {
  await knex.raw(
    `DELETE FROM log_writers
      WHERE last_at < clock_timestamp() - interval '1 hour'
        AND NOT EXISTS (SELECT FROM nodes WHERE nodes.id = log_writers.node_id)
        AND NOT EXISTS (SELECT FROM logs WHERE logs.writer_id = log_writers.id)`,
  );
}

/** Names sort as times. */
function partitionOf(hour: number): string {
  return `logs_${new Date(hour).toISOString().slice(0, 13).replaceAll(/\D/g, '')}`;
}

/** SQL: the same of this hour, by the clock of PostgreSQL. */
const OF_THIS_HOUR = `to_char(clock_timestamp() AT TIME ZONE 'UTC', '"logs_"YYYYMMDDHH24')`;

function hourIn(name: string): number {
  const [, year, month, day, hour] = /(\d{4})(\d\d)(\d\d)(\d\d)$/.exec(name) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour));
}
