/** Reads the table `logs`. */
import type { Knex } from 'knex';
import type { Kind } from '../model/log-entry.js';
import type { Scope } from '../model/permission.js';
import type { Store } from './database.js';
import { noCursor, type Page, type Place } from './pages.js';
import { ofVisibleEndpoints } from './visibility.js';

/** Which entries are wanted. */
export interface LogFilter {
  readonly endpointId?: string | undefined;
  readonly collectionId?: string | undefined;
  /** The host of their endpoints. */
  readonly domain?: string | undefined;
  readonly kind?: Kind | undefined;
  /** Lowest level, as a number. */
  readonly level?: number | undefined;
  /** The lowest and the highest status. */
  readonly status?: readonly [number, number] | undefined;
  readonly requestId?: string | undefined;
  /** All entries of its requests. */
  readonly traceId?: string | undefined;
  readonly version?: number | undefined;
  /** Part of the message or of the path, in any case. */
  readonly search?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** The hosts that whoever asks may see. */
  readonly scope?: Scope;
}

/** A row. */
export interface LogRow {
  readonly at: Date;
  readonly writer_id: number;
  readonly number: number;
  readonly kind: Kind;
  readonly level: number;
  readonly endpoint_id: string;
  readonly version: number | null;
  readonly request_id: string | null;
  readonly message: string;
  readonly fields: Record<string, unknown> | null;
  readonly method: string | null;
  readonly route: string | null;
  readonly path: string | null;
  readonly status: number | null;
  readonly duration_ms: number | null;
  readonly bytes: number | null;
  readonly client_ip: string | null;
  readonly trace_id: string | null;
}

/** What a writer has written: its entries up to this number, none of which is younger than this. */
export interface WriterPosition {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Positions of writers, by their ids. */
export type LogPosition = ReadonlyMap<number, WriterPosition>;

/** Entries, the newest first. */
export async function listLogs(
  store: Store,
  filter: LogFilter,
  limit: number,
  after: Place | undefined,
  upTo?: LogPosition,
): Promise<Page<LogRow>> {
  const query = filtered(store, filter)
    .orderByRaw('at DESC, writer_id DESC, number DESC')
    .limit(limit + 1);
  query.select(
    store.knex.raw(`logs.*, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS page_key`),
  );
  if (after) {
    const [writer, number] = after.tie.split('.');
    query.whereRaw('(at, writer_id, number) < (?::timestamptz, ?::integer, ?::bigint)', [
      after.key,
      writer ?? null,
      number ?? null,
    ] as never[]);
  }
  if (upTo) {
    const [writers, numbers] = [[...upTo.keys()], [...upTo.values()].map(({ number }) => number)];
    query.whereRaw(
      'number <= (SELECT p.number FROM unnest(?::integer[], ?::bigint[]) AS p (id, number) WHERE p.id = writer_id)',
      [writers, numbers] as never[],
    );
  }
  const candidates = await query.then(
    (rows) => rows as (LogRow & { page_key: string })[],
    (error: { code?: string }) => {
      throw after && error.code?.startsWith('22') ? noCursor() : error;
    },
  );
  const rows = candidates.slice(0, limit);
  const last = rows.at(-1);
  const next =
    candidates.length > limit && last
      ? { key: last.page_key, tie: `${last.writer_id}.${last.number}` }
      : undefined;
  return { rows: rows.map(({ page_key: _, ...row }) => row), next };
}

/** What all writers have written. */
export async function logPosition({ knex }: Store): Promise<LogPosition> {
  const rows = await knex<{ id: number; last_number: number; last_at: Date }>('log_writers').select('*');
  return new Map(rows.map((row) => [row.id, { number: row.last_number, at: row.last_at.getTime() }]));
}

/**
 * The entries of one writer after a position, up to another, in their order.
 */
export async function logsOfWriter(
  store: Store,
  filter: LogFilter,
  writerId: number,
  after: WriterPosition,
  upTo: WriterPosition,
  limit: number,
): Promise<LogRow[]> {
  return (
    filtered(store, filter)
      .select('logs.*')
      .where({ writer_id: writerId })
      .whereRaw('number > ? AND number <= ?', [after.number, upTo.number])
      // Names the partitions.
      .whereRaw('at >= ? AND at <= ?', [new Date(after.at), new Date(upTo.at + 1)])
      .orderBy('number')
      .limit(limit)
  );
}

function filtered({ knex }: Store, filter: LogFilter): Knex.QueryBuilder {
  const { requestId, traceId } = filter;
  const ofTrace = 'request_id IN (SELECT request_id FROM logs WHERE trace_id = ?)';
  // First of all: the planner would rather read all entries in their order, and expect one of the request soon.
  const first = (condition: string, value: string): Knex.QueryBuilder =>
    knex.from(knex.raw(`(SELECT * FROM logs WHERE ${condition} OFFSET 0) AS logs`, [value]));
  let query: Knex.QueryBuilder = knex('logs');
  if (requestId !== undefined) query = first('request_id = ?', requestId);
  else if (traceId !== undefined) query = first(ofTrace, traceId);
  if (requestId !== undefined && traceId !== undefined) query.whereRaw(ofTrace, [traceId]);
  const { endpointId, collectionId, domain, status, search } = filter;
  if (endpointId !== undefined) query.where({ endpoint_id: endpointId });
  if (collectionId !== undefined)
    query.whereIn('endpoint_id', knex('endpoints').select('id').where({ collection_id: collectionId }));
  if (domain !== undefined) query.whereIn('endpoint_id', knex('endpoints').select('id').where({ domain }));
  ofVisibleEndpoints(query, 'logs.endpoint_id', filter.scope);
  if (filter.kind !== undefined) query.where({ kind: filter.kind });
  if (filter.level !== undefined) query.where('level', '>=', filter.level);
  if (status) query.whereBetween('status', [...status]);
  if (filter.version !== undefined) query.where({ version: filter.version });
  if (filter.since) query.where('at', '>=', filter.since);
  if (filter.until) query.where('at', '<', filter.until);
  if (search !== undefined) {
    const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
    query.where((either) => either.whereILike('message', pattern).orWhereILike('path', pattern));
  }
  return query;
}
