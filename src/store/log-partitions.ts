/** The partitions of the table `logs`, one for each hour (UTC). Old entries are dropped with theirs. */
import { isLockTimeout, type Store, transaction } from './database.js';

const HOUR_MS = 3_600_000;
/** Whoever makes or drops a partition holds this lock. */
const LOCK = `hashtext('edge-gateway logs')`;
/** Readers wait behind a drop that waits for a reader: not for longer than this. */
const DROP_WAIT_MS = 2_000;

/** The hour of a time, milliseconds since 1970. */
export function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

/** Makes the partition of an hour, unless it is there. */
export async function ensureLogPartition(store: Store, hour: number): Promise<void> {
  await transaction(store, async ({ knex }) => {
    await knex.raw(`SELECT pg_advisory_xact_lock(${LOCK})`);
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

/** What the partition of an hour takes, bytes; 0 when there is none. */
export async function sizeOfLogPartition({ knex }: Store, hour: number): Promise<number> {
  const { rows } = await knex.raw<{ rows: { bytes: number | null }[] }>(
    'SELECT pg_total_relation_size(to_regclass(?)) AS bytes',
    [partitionOf(hour)],
  );
  return rows[0]?.bytes ?? 0;
}

/** What was dropped. */
export interface DroppedLogs {
  readonly partitions: number;
  readonly bytes: number;
}

/**
 * Drops partitions that are older than so many days, and the oldest of those that take more than so many MiB together.
 * That of this hour stays.
 */
export async function dropOldLogs(store: Store, days: number, megabytes: number): Promise<DroppedLogs> {
  const { rows } = await store.knex.raw<{ rows: { name: string; bytes: number }[] }>(
    `SELECT inhrelid::regclass::text AS name, pg_total_relation_size(inhrelid) AS bytes
       FROM pg_inherits WHERE inhparent = 'logs'::regclass ORDER BY name DESC`,
  );
  const now = Date.now();
  const oldest = partitionOf(hourOf(now - days * 24 * HOUR_MS));
  const current = partitionOf(hourOf(now));
  let left = megabytes * 1024 * 1024;
  let dropped: DroppedLogs = { partitions: 0, bytes: 0 };
  for (const { name, bytes } of rows) {
    left -= bytes;
    if (name >= current || (name >= oldest && left >= 0)) continue;
    if (!(await drop(store, name))) break;
    dropped = { partitions: dropped.partitions + 1, bytes: dropped.bytes + bytes };
  }
  await forgetWriters(store);
  return dropped;
}

/** @returns false when readers do not make way; it is tried again later */
async function drop(store: Store, name: string): Promise<boolean> {
  try {
    await transaction(store, async ({ knex }) => {
      await knex.raw(`SELECT pg_advisory_xact_lock(${LOCK})`);
      await knex.raw(`SET LOCAL lock_timeout = ${DROP_WAIT_MS}`);
      await knex.raw('DROP TABLE IF EXISTS ??', [name]);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** Forgets gateways that have ended, and whose entries were dropped. */
async function forgetWriters({ knex }: Store): Promise<void> {
  await knex.raw(
    `DELETE FROM log_writers
      WHERE NOT EXISTS (SELECT FROM nodes WHERE nodes.id = log_writers.node_id)
        AND NOT EXISTS (SELECT FROM logs WHERE logs.writer_id = log_writers.id)`,
  );
}

/** Names sort as times. */
function partitionOf(hour: number): string {
  return `logs_${new Date(hour).toISOString().slice(0, 13).replaceAll(/\D/g, '')}`;
}
