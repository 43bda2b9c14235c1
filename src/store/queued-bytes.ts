/** What queued requests and schedules take in the database, by owner (`src/model/owner.ts`). */
import type { HandlerRequest } from '../model/handler-request.js';
import { WITHOUT_DOMAIN } from '../model/owner.js';
import type { Store } from './database.js';
import { ownerOfHost } from './owners.js';

/**
 * What a row counts as beside its request: empty requests have a limit, too. It is more than a row takes, because the
 * rows of an owner are added up whenever one is to be more: 512 MiB are at most 65,536 rows, which takes 5 to 10 ms
 * (480,000 would take 30 to 70 ms). So an owner with small requests has fewer of them than would have room on the disk.
 */
const ROW_BYTES = 8_192;

/**
 * SQL: the owner of an endpoint, and the bytes of its requests that have not ended and of its schedules. Its value is
 * the id of the endpoint. It is read where a request is accepted, without a lock: those that come at the same moment
 * may go beyond the limit, by as much as the API takes at a time.
 */
const QUEUED = `
  SELECT own.owner, queued.bytes
    FROM (SELECT domain AS host, ${ownerOfHost('domain')} AS owner FROM endpoints WHERE id = ?) AS own,
         LATERAL (
           SELECT coalesce(sum(
                    coalesce((SELECT sum(queued_bytes) FROM jobs
                               WHERE endpoint_id = owned.id AND state IN ('queued', 'running')), 0) +
                    coalesce((SELECT sum(queued_bytes) FROM schedules WHERE endpoint_id = owned.id), 0)), 0) AS bytes
             FROM (
               SELECT id FROM endpoints WHERE domain = own.host AND own.owner <> '${WITHOUT_DOMAIN}'
               UNION ALL
               SELECT id FROM endpoints
                WHERE own.owner = '${WITHOUT_DOMAIN}'
                  AND NOT EXISTS (SELECT FROM domains WHERE host = endpoints.domain)) AS owned) AS queued`;

/**
 * SQL: whether the owner of an endpoint may have so many bytes more. Its values: the endpoint, the bytes, the limit.
 */
export const HAS_ROOM = `EXISTS (SELECT FROM (${QUEUED}) AS queued WHERE bytes + ? <= ?)`;

/** What a request takes while it is queued, or of a schedule. */
export function queuedBytesOf({
  path,
  headers,
  body,
}: Pick<HandlerRequest, 'path' | 'headers'> & {
  readonly body: Pick<Buffer, 'length'> | null;
}): number {
  const bytes = Buffer.byteLength(path) + Buffer.byteLength(JSON.stringify(headers)) + (body?.length ?? 0);
  return ROW_BYTES + bytes;
}

/** @returns the owner of an endpoint, if it may not have so many bytes more */
export async function ownerWithoutRoom(
  store: Store,
  endpointId: string,
  bytes: number,
  limit: number,
): Promise<string | undefined> {
  const { rows } = await store.knex.raw<{ rows: { owner: string }[] }>(
    `SELECT owner FROM (${QUEUED}) AS queued WHERE bytes + ? > ?`,
    [endpointId, bytes, limit],
  );
  return rows[0]?.owner;
}
