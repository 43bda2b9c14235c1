/** Query parameters of lists that can be long: `search`, `limit` and `cursor`. The next page is in a `Link` header. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Scope } from '../../model/permission.js';
import { type ListOptions, noCursor, type Page, type Place } from '../../store/pages.js';
import { mapInParts } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';
import { Reply } from '../response/reply.js';
import { optional } from './schemas.js';

const DEFAULT_LIMIT = 100;

export const PageQuery = optional({
  search: Type.String({
    format: 'line',
    maxLength: 255,
    description: 'Part of the name, host, path or another text of what is listed, in any case',
  }),
  limit: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    description: 'At most so many; where there are more, `Link` has the next ones',
  }),
  cursor: Type.String({ minLength: 1, maxLength: 1_024, description: 'From `Link`, with the same query' }),
});

export interface PageParameters {
  readonly search?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/**
 * What of a list is wanted.
 * @param defaultLimit without `limit`: all, unless it is given
 * @throws AppError invalid_input when the cursor is none, or of another query
 */
export function listOptions(
  request: {
    readonly raw: IncomingMessage;
    readonly query: PageParameters;
    readonly scope: Scope;
    readonly principal: Principal;
  },
  defaultLimit?: number,
): ListOptions {
  const { search, limit, cursor } = request.query;
  return {
    scope: request.scope,
    owner: ownerOfActor(request.principal.actor),
    search,
    limit: limit ?? (cursor === undefined ? defaultLimit : DEFAULT_LIMIT),
    after: cursor === undefined ? undefined : placeOf(cursor, queryOf(request.raw)),
  };
}

/** Answers with a page: its rows, or what was made of them, as they are shown. */
export async function pageReply<Row>(
  raw: IncomingMessage,
  { next }: Page<unknown>,
  rows: readonly Row[],
  present: (row: Row) => unknown,
): Promise<Reply> {
  const data = await mapInParts(rows, present);
  if (!next) return new Reply(200, data);
  const { path, parameters } = queryOf(raw);
  const url = `${path}?${new URLSearchParams([...parameters, ['cursor', cursorOf(next, raw)]])}`;
  return new Reply(200, data, { Link: `<${url}>; rel="next"` });
}

interface ListQuery {
  readonly path: string;
  /** All but the cursor. */
  readonly parameters: readonly (readonly [string, string])[];
}

function queryOf({ url = '/' }: IncomingMessage): { path: string; parameters: [string, string][] } {
  const [path = '', search = ''] = url.split(/\?(.*)/s, 2);
  return { path, parameters: [...new URLSearchParams(search)].filter(([name]) => name !== 'cursor') };
}

/** Pages of one query may have different sizes. */
function digestOf({ path, parameters }: ListQuery): string {
  const relevant = parameters.filter(([name]) => name !== 'limit').sort();
  return createHash('sha256')
    .update(JSON.stringify([path, relevant]))
    .digest('base64url')
    .slice(0, 12);
}

/** The cursor of a place in the list that a request asks for. */
export function cursorOf({ key, tie }: Place, raw: IncomingMessage): string {
  return Buffer.from(JSON.stringify([digestOf(queryOf(raw)), key, tie])).toString('base64url');
}

function placeOf(cursor: string, query: ListQuery): Place {
  let place: unknown;
  try {
    place = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw noCursor();
  }
  const [digest, key, tie] = Array.isArray(place) ? (place as unknown[]) : [];
  if (typeof digest !== 'string' || typeof key !== 'string' || typeof tie !== 'string') throw noCursor();
  if (digest !== digestOf(query)) {
    const advice = 'repeat the query that it came with, or leave it out to begin anew';
    throw new AppError('invalid_input', `query.cursor: is of another query; ${advice}`);
  }
  return { key, tie };
}
