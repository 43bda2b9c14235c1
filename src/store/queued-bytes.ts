/** What queued requests and schedules take in the database, by domain. */
import type { HandlerRequest } from '../model/handler-request.js';
import type { Store } from './database.js';

/** What a row takes beside its request, about: empty requests have a limit, too. */
const ROW_BYTES = 1_024;

const OF_ROW = `${ROW_BYTES} + octet_length(path) + octet_length(headers::text) + coalesce(octet_length(body), 0)`;
const OF_DOMAIN = 'SELECT id FROM endpoints WHERE domain = (SELECT domain FROM endpoints WHERE id = ?)';

/**
 * SQL: bytes of the requests of a domain that have not ended, and of its schedules. Its two values are the id of one of
 * its endpoints. It is read where a request is accepted, without a lock: those that come at the same moment may go
 * beyond the limit, by as much as the API takes at a time.
 */
export const QUEUED_BYTES = `(
  (SELECT coalesce(sum(${OF_ROW}), 0) FROM jobs
    WHERE state IN ('queued', 'running') AND endpoint_id IN (${OF_DOMAIN})) +
  (SELECT coalesce(sum(${OF_ROW}), 0) FROM schedules WHERE endpoint_id IN (${OF_DOMAIN})))`;

/** What a request takes while it is queued, or of a schedule. */
export function queuedBytesOf({ path, headers, body }: Omit<HandlerRequest, 'method'>): number {
  return ROW_BYTES + Buffer.byteLength(path) + Buffer.byteLength(JSON.stringify(headers)) + body.length;
}

/** Whether the domain of an endpoint may have so many bytes more. */
export async function hasRoomFor(
  store: Store,
  endpointId: string,
  bytes: number,
  limit: number,
): Promise<boolean> {
  const { rows } = await store.knex.raw<{ rows: [{ hasRoom: boolean }] }>(
    `SELECT ${QUEUED_BYTES} + ? <= ? AS "hasRoom"`,
    [endpointId, endpointId, bytes, limit],
  );
  return rows[0].hasRoom;
}
