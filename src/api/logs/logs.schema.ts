/** Schemas of the log. */
import { Type } from '@sinclair/typebox';
import { KINDS, LEVEL_NAMES, LEVELS, type Level } from '../../model/log-entry.js';
import type { LogFilter, LogRow } from '../../store/logs.js';
import { TimeSpan, timeSpan } from '../request/time-span.js';
import { PageQuery } from '../route/paging.js';
import { Id, nullable, oneOf, optional, Timestamp } from '../route/schemas.js';

export const EndpointLogsQuery = Type.Object({
  ...optional({
    kind: oneOf(KINDS, { description: '`output`: what a handler says; `request`: what became of a request' }),
    level: oneOf(LEVEL_NAMES as [Level, ...Level[]], { description: 'This level and those above' }),
    status: Type.String({
      format: 'status',
      description: 'Of requests: a status such as `503`, or a class such as `5xx`',
    }),
    request_id: Type.String({ format: 'line', maxLength: 256 }),
    trace_id: Type.String({ format: 'trace-id', description: 'All entries of its requests' }),
    version: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    ...TimeSpan,
  }),
  ...PageQuery,
});

export const LogsQuery = Type.Object({
  ...optional({
    endpoint_id: Id,
    collection_id: Id,
    domain: Type.String({ format: 'hostname-or-any', description: 'The host of the endpoints' }),
  }),
  ...EndpointLogsQuery.properties,
});

const LogEntryView = Type.Object(
  {
    id: Type.String({ description: 'Unique, and the same in every answer' }),
    at: Timestamp,
    kind: oneOf(KINDS),
    level: oneOf(LEVEL_NAMES as [Level, ...Level[]]),
    endpoint_id: Id,
    version: nullable(Type.Integer({ description: 'Of the endpoint; null when no handler was asked' })),
    request_id: nullable(Type.String()),
    message: Type.String(),
    fields: nullable(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        additionalProperties: true,
        description: 'Key-values of the entry; `target` says what made it, `place` where a panic was',
      }),
    ),
    method: nullable(Type.String()),
    route: nullable(Type.String()),
    path: nullable(Type.String({ description: 'Without the query' })),
    status: nullable(Type.Integer()),
    duration_ms: nullable(Type.Number()),
    bytes: nullable(Type.Integer({ description: 'Length of the body of the response' })),
    client_ip: nullable(Type.String()),
    trace_id: nullable(Type.String({ description: 'Of W3C Trace Context' })),
  },
  { title: 'LogEntry' },
);

export const LogsPage = Type.Object(
  {
    items: Type.Array(LogEntryView),
    next_cursor: nullable(Type.String({ description: 'For `cursor`, with the same query' })),
  },
  { title: 'LogsPage' },
);

const LEVEL_OF_NUMBER = new Map<number, Level>(LEVEL_NAMES.map((name) => [LEVELS[name], name]));

export function presentEntry(row: LogRow) {
  const { writer_id, number, at, level, ...rest } = row;
  return {
    id: `${writer_id}.${number}`,
    at: at.toISOString(),
    level: LEVEL_OF_NUMBER.get(level) ?? 'info',
    ...rest,
  };
}

/** The parameters of a request for entries. */
export interface LogParameters {
  readonly endpoint_id?: string;
  readonly collection_id?: string;
  readonly domain?: string;
  readonly kind?: LogRow['kind'];
  readonly level?: Level;
  readonly status?: string;
  readonly request_id?: string;
  readonly trace_id?: string;
  readonly version?: number;
  readonly search?: string;
  readonly since?: string;
  readonly until?: string;
}

/** Where nothing says how far back: a search reads all entries. */
const SEARCHED_MS = 86_400_000;

/** @throws AppError invalid_input when the time span is none */
export function filterOf(query: LogParameters): LogFilter {
  const { since, until } = timeSpan(query);
  return {
    endpointId: query.endpoint_id,
    collectionId: query.collection_id,
    domain: query.domain?.toLowerCase(),
    kind: query.kind,
    level: query.level && LEVELS[query.level],
    status: query.status === undefined ? undefined : statusRange(query.status),
    requestId: query.request_id,
    traceId: query.trace_id,
    version: query.version,
    search: query.search,
    since:
      since ??
      (query.search === undefined ? undefined : new Date((until?.getTime() ?? Date.now()) - SEARCHED_MS)),
    until,
  };
}

function statusRange(text: string): readonly [number, number] {
  const lowest = Number(text.replace('xx', '00'));
  return [lowest, text.endsWith('xx') ? lowest + 99 : lowest];
}
