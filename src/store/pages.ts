/**
 * Parts of long lists. A page begins behind a place in the order of the list, not at a number: rows that are added or
 * deleted meanwhile make no other row appear twice, or not at all.
 */
import type { Knex } from 'knex';
import { AppError } from '../errors.js';
import type { Scope } from '../model/permission.js';
import { Turns } from '../util/turns.js';
import type { Store } from './database.js';
import { visible } from './visibility.js';

/** A place in a list: what it is sorted by, as PostgreSQL writes it, and what tells rows apart that have the same. */
export interface Place {
  readonly key: string;
  readonly tie: string;
}

/** What of a list is wanted; all of it unless `limit` is given. */
export interface ListOptions {
  /** Part of a name or another text of the row, in any case. */
  readonly search?: string | undefined;
  readonly limit?: number | undefined;
  readonly after?: Place | undefined;
  /** The hosts that whoever asks may see; for lists of objects that belong to hosts. */
  readonly scope?: Scope;
  /** Who asks: long pages are read in turns. */
  readonly owner?: string;
}

/** Some rows, and where the next ones begin; undefined: there are no more. */
export interface Page<T> {
  readonly rows: T[];
  readonly next: Place | undefined;
}

/** How a list is sorted and searched. Columns have the names of their tables. */
export interface ListOrder {
  readonly key: { readonly column: string; readonly type: 'timestamptz' | 'integer' | 'text' };
  readonly tie: { readonly column: string; readonly type: 'uuid' | 'integer' | 'bigint' };
  readonly direction: 'asc' | 'desc';
  readonly searched: readonly string[];
  /** What is listed, where it belongs to hosts. */
  readonly kind?: Parameters<typeof visible>[1];
}

/** The order in which rows of a table were created. */
export function byCreation(
  table: string,
  direction: ListOrder['direction'],
  searched: readonly string[],
  kind?: ListOrder['kind'],
): ListOrder {
  return {
    ...(kind && { kind }),
    key: { column: `${table}.created_at`, type: 'timestamptz' },
    tie: { column: `${table}.id`, type: 'uuid' },
    direction,
    searched: searched.map((column) => `${table}.${column}`),
  };
}

/** Whoever asks for a page has changed the place that is in its cursor. */
export function noCursor(): AppError {
  return new AppError(
    'invalid_input',
    'query.cursor: is no cursor of this list; take it from the previous page, or leave it out for the first one',
  );
}

/** A page with more rows is long. */
const LONG = 100;

/**
 * What the database sends is read some MiB at a time, however large it is: with many long pages at once, that would
 * hold up the event loop.
 */
const longPages = new Turns({ places: 2, beyond: 2 });

/** Reads a page. @param query of the rows with all conditions and columns, but without an order */
export async function readPage<T>(
  { knex }: Store,
  query: Knex.QueryBuilder,
  { key, tie, direction, searched, kind }: ListOrder,
  { search, limit, after, scope, owner = '' }: ListOptions,
): Promise<Page<T>> {
  const isLong = limit === undefined || limit > LONG;
  const read = async <R>(): Promise<R[]> => (isLong ? longPages.run(owner, async () => query) : query);
  query.orderBy([key.column, tie.column].map((column) => ({ column, order: direction })));
  if (kind) visible(query, kind, scope);
  if (search !== undefined) {
    const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
    query.where((either) => {
      for (const column of searched) either.orWhereRaw('?? ILIKE ?', [column, pattern]);
    });
  }
  if (limit === undefined) return { rows: await read(), next: undefined };
  if (after) {
    const isBehind = direction === 'asc' ? '>' : '<';
    query.whereRaw(`(??, ??) ${isBehind} (?::${key.type}, ?::${tie.type})`, [
      ...[key.column, tie.column],
      ...[after.key, after.tie],
    ]);
  }
  query.select(knex.raw('?? ::text AS page_key, ?? ::text AS page_tie', [key.column, tie.column]));
  query.limit(limit + 1);
  const candidates = await read<T & { page_key: string; page_tie: string }>().catch(
    (error: { code?: string }) => {
      // What the cursor has is none of these types (class 22 of PostgreSQL: data exception).
      throw after && error.code?.startsWith('22') ? noCursor() : error;
    },
  );
  const rows = candidates.slice(0, limit);
  const last = rows.at(-1);
  const hasMore = candidates.length > limit && last !== undefined;
  return {
    rows: rows.map(({ page_key: _key, page_tie: _tie, ...row }) => row as T),
    next: hasMore ? { key: last.page_key, tie: last.page_tie } : undefined,
  };
}
