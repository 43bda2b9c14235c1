/** The log: what handlers say, and what became of requests. */
import type { Static } from '@sinclair/typebox';
import { requireFound } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import { findEndpoint } from '../../store/endpoints.js';
import { mapInParts } from '../../util/pauses.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { eventStream } from '../response/event-stream.js';
import type { Reply } from '../response/reply.js';
import { cursorOf, listOptions } from '../route/paging.js';
import { type ApiRequest, defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { LogReads } from './log-reads.js';
import {
  EndpointLogsQuery,
  filterOf,
  type LogParameters,
  LogsPage,
  LogsQuery,
  presentEntry,
} from './logs.schema.js';
import { readPosition } from './position.js';
import { logEvents } from './tail.js';

const LISTED = 100;
/** Entries that a stream begins with, as `tail -f` does. */
const TAILED = 10;
const EVENTS = 'text/event-stream';

const summary = 'the newest entries first; as they come, with `Accept: text/event-stream`';

export const logRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/logs',
    permission: 'logs:read',
    summary: `Read the log of all endpoints, ${summary}`,
    tag: 'Logs',
    query: LogsQuery,
    data: LogsPage,
    errors: ['busy'],
    handle: (request, deps) => readLogs(request, deps, request.query),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/logs',
    permission: 'logs:read',
    summary: `Read the log of an endpoint, ${summary}`,
    tag: 'Logs',
    params: IdParams,
    query: EndpointLogsQuery,
    data: LogsPage,
    errors: ['busy'],
    handle: async (request, deps) => {
      const { id } = request.params;
      requireFound(await findEndpoint(deps.store, id), 'endpoint', id);
      return readLogs(request, deps, { ...request.query, endpoint_id: id });
    },
  }),
];

type LogsRequest = Pick<
  ApiRequest<object, Static<typeof EndpointLogsQuery>, object, object, unknown>,
  'query' | 'raw' | 'prefers' | 'header' | 'log' | 'principal' | 'scope' | 'isStillAllowed'
>;

async function readLogs(
  request: LogsRequest,
  deps: ApiDependencies,
  parameters: LogParameters,
): Promise<Static<typeof LogsPage> | Reply> {
  const { raw } = request;
  const filter = { ...filterOf(parameters), scope: request.scope };
  const log = new LogReads(deps.store, ownerOfActor(request.principal.actor));
  if (request.prefers('application/json', EVENTS) === EVENTS) {
    const last = request.header('last-event-id');
    const after = last === undefined ? undefined : await readPosition(deps, last);
    const newest = request.query.limit ?? TAILED;
    return eventStream(deps, request, (closed) => logEvents({ ...deps, log }, filter, after, newest, closed));
  }
  const { limit = LISTED, after } = listOptions(request, LISTED);
  const { rows, next } = await log.list(filter, limit, after);
  return { items: await mapInParts(rows, presentEntry), next_cursor: next ? cursorOf(next, raw) : null };
}
