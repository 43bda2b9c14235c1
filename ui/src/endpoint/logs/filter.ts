/** Which entries are shown: kept in the address, with the names that the API has for them. */
import type { Input } from '../../api/client.js';

const NAMES = [
  'search',
  'level',
  'kind',
  'status',
  'request_id',
  'trace_id',
  'version',
  'since',
  'until',
] as const;

export type FilterName = (typeof NAMES)[number];
export type LogFilter = { readonly [name in FilterName]?: string };
export type LogQuery = NonNullable<Input<'GET /api/endpoints/{id}/logs'>['query']>;

export function filterOf(address: URLSearchParams): LogFilter {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = address.get(name);
      return value ? [[name, value]] : [];
    }),
  );
}

/** The address with other filters; those that are `undefined` or empty are left out. */
export function withFilter(address: URLSearchParams, filter: LogFilter): URLSearchParams {
  const changed = new URLSearchParams(address);
  for (const name of NAMES) {
    const value = filter[name];
    if (value) changed.set(name, value);
    else changed.delete(name);
  }
  return changed;
}

/** The API says what is wrong with values that it does not know. */
export function queryOf({ version, ...filter }: LogFilter): LogQuery {
  return { ...filter, ...(version !== undefined && { version: Number(version) }) } as LogQuery;
}

/** A time of the address for a field of the reader's zone. */
export function toLocal(iso: string | undefined): string {
  const date = new Date(iso ?? '');
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The other way round; undefined for an empty field. */
export function fromLocal(local: string): string | undefined {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
