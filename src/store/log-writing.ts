/** Writes entries of the log: with COPY, in the order of their numbers. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { LEVELS, type LogEntry } from '../model/log-entry.js';
import { storable } from '../util/text.js';
import { type Store, violatedConstraint } from './database.js';

const COPY = `COPY logs (at, writer_id, number, kind, level, endpoint_id, version, request_id, message, fields,
  method, route, path, status, duration_ms, bytes, client_ip, trace_id) FROM STDIN`;

/** An entry with its place in the log. */
export interface NumberedEntry extends LogEntry {
  /** Milliseconds since 1970, as PostgreSQL has them; never less than that of an entry before it. */
  readonly at: number;
  readonly number: number;
}

/** Registers a gateway that writes entries. */
export async function addLogWriter({ knex }: Store, nodeId: string): Promise<number> {
  const [row] = await knex<{ id: number; node_id: string }>('log_writers')
    .insert({ node_id: nodeId })
    .returning('id');
  if (!row) throw new Error('log_writers has returned no id');
  return row.id;
}

/** A gateway is not registered any more, because its node has expired and its entries were dropped. */
export class LogWriterGoneError extends Error {
  override readonly name = 'LogWriterGoneError';
}

/** The clock of PostgreSQL, milliseconds since 1970. */
export async function databaseTime({ knex }: Store): Promise<number> {
  const { rows } = await knex.raw<{ rows: [{ now: Date }] }>('SELECT clock_timestamp() AS now');
  return rows[0].now.getTime();
}

/**
 * Writes entries, all or none. Entries that were written before, by a call whose answer was lost, are not written
 * again.
 * @param entries in the order of their numbers, at least one; all of hours that have a partition
 * @throws LogWriterGoneError
 */
export async function writeLogs(
  store: Store,
  writerId: number,
  entries: readonly NumberedEntry[],
): Promise<void> {
  const last = entries.at(-1);
  if (!last) return;
  const pool = store.knex.client as {
    acquireConnection(): Promise<pg.Client>;
    releaseConnection(c: pg.Client): void;
  };
  const connection = await pool.acquireConnection();
  try {
    await connection.query('BEGIN');
    try {
      const rows = entries.map((entry) => rowOf(writerId, entry)).join('');
      await pipeline(Readable.from([Buffer.from(rows)]), connection.query(copyFrom(COPY)));
      const { rowCount } = await connection.query(
        'UPDATE log_writers SET last_number = $2, last_at = $3 WHERE id = $1',
        [writerId, last.number, new Date(last.at)],
      );
      // Nobody who follows the log would find them.
      if (rowCount === 0) throw new LogWriterGoneError(`there is no writer ${writerId} of the log`);
      await connection.query('COMMIT');
    } catch (error) {
      await connection.query('ROLLBACK');
      throw error;
    }
  } catch (error) {
    if (violatedConstraint(error) === undefined) throw error;
  } finally {
    pool.releaseConnection(connection);
  }
  store.announce('log', ALL_LOGS);
}

/** What announcements of new entries name. */
export const ALL_LOGS = 'all';

/** A line in the text format of COPY. */
function rowOf(writerId: number, entry: NumberedEntry): string {
  const { request } = entry;
  const columns = [
    ...[new Date(entry.at).toISOString(), writerId, entry.number, entry.kind, LEVELS[entry.level]],
    ...[entry.endpointId, entry.version, entry.requestId, entry.message],
    entry.fields && JSON.stringify(entry.fields),
    ...[request?.method, request?.route, request?.path, request?.status],
    ...[request?.durationMs, request?.bytes, request?.clientIp, request?.traceId],
  ];
  return `${columns.map(escaped).join('\t')}\n`;
}

function escaped(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '\\N';
  if (typeof value === 'number') return String(value);
  return storable(value).replace(/[\\\n\r\t]/g, (character) => ESCAPES[character] ?? '');
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
