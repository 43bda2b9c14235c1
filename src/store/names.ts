/** Objects by the names that people know them by, as far as whoever asks may see them. */
import type { Knex } from 'knex';
import { endpointNames, hostAndPath, isObjectId, type NamedKind } from '../model/object-name.js';
import type { Scope } from '../model/permission.js';
import type { Store } from './database.js';
import { visible } from './visibility.js';

/** An object that has a name. */
export interface NamedObject {
  readonly id: string;
  /** The longest name that it has: `HOST/COLLECTION/NAME` of an endpoint. */
  readonly name: string;
  /** The method and the route of an endpoint; undefined for others. */
  readonly method?: string;
  readonly route?: string;
}

/** Objects whose names are compared with one that nothing has. */
const COMPARED = 2_000;
/** So many objects of an ambiguous name are told. */
const MEANT = 10;

/** SQL of the names, and the tables they are from. */
const ENDPOINT_NAME = `endpoints.domain || '/' || coalesce(collections.name || '/', '') || endpoints.name`;
const COLUMNS: Readonly<Record<NamedKind, string>> = {
  endpoint: `endpoints.id, endpoints.method, endpoints.route, ${ENDPOINT_NAME} AS name`,
  collection: `collections.id, domains.host || '/' || collections.name AS name`,
  domain: 'domains.id, domains.host AS name',
  service: 'services.id, services.name',
};

/** All objects that a name, or an id, can mean; several where it is ambiguous. */
export async function objectsNamed(
  store: Store,
  kind: NamedKind,
  name: string,
  scope: Scope,
): Promise<NamedObject[]> {
  const query = namesOf(store, kind, scope);
  if (isObjectId(name)) return query.where(`${kind}s.id`, name);
  switch (kind) {
    case 'endpoint':
      return endpointsNamed(store, name, scope);
    case 'domain':
      query.where('domains.host', name.toLowerCase());
      break;
    case 'service':
      query.where('services.name', name);
      break;
    case 'collection': {
      const { host, path } = hostAndPath(name) ?? {};
      query.where({ 'domains.host': host ?? '', 'collections.name': path ?? '' });
      break;
    }
  }
  return query.limit(MEANT);
}

/** Those of the host itself; where it has none, those for all hosts in one of its collections. */
async function endpointsNamed(store: Store, name: string, scope: Scope): Promise<NamedObject[]> {
  for (const hosts of ['endpoints.domain', 'domains.host']) {
    const query = namesOf(store, 'endpoint', scope).where((either) => {
      either.whereRaw('false');
      for (const read of endpointNames(name)) {
        either.orWhere((both) => {
          // A route is that of one host: one for all hosts is another endpoint.
          if ('key' in read)
            both.where({ 'endpoints.domain': read.host, method: read.method, route_key: read.key });
          else
            both
              .where(hosts, read.host)
              .where((path) =>
                path
                  .where('endpoints.name', read.path)
                  .orWhereRaw(`collections.name || '/' || endpoints.name = ?`, [read.path]),
              );
        });
      }
    });
    const matches: NamedObject[] = await query.limit(MEANT);
    if (matches.length > 0) return matches;
  }
  return [];
}

/** Names of objects that can be meant by one that nothing has: those of its host, else all, up to some. */
export async function namesLike(
  store: Store,
  kind: NamedKind,
  name: string,
  scope: Scope,
): Promise<readonly NamedObject[]> {
  const host = hostAndPath(name)?.host.replace(/^\S+ /, '');
  const ofHost: NamedObject[] =
    host === undefined || kind === 'domain' || kind === 'service'
      ? []
      : await namesOf(store, kind, scope)
          .where(kind === 'endpoint' ? 'endpoints.domain' : 'domains.host', host)
          .limit(COMPARED);
  return ofHost.length > 0 ? ofHost : namesOf(store, kind, scope).limit(COMPARED);
}

function namesOf({ knex }: Store, kind: NamedKind, scope: Scope): Knex.QueryBuilder {
  const query = knex(`${kind}s`)
    .select(knex.raw(COLUMNS[kind]))
    .orderBy([`${kind}s.created_at`, `${kind}s.id`]);
  if (kind === 'endpoint') query.leftJoin('collections', 'collections.id', 'endpoints.collection_id');
  if (kind === 'endpoint' || kind === 'collection')
    query.leftJoin('domains', 'domains.id', 'collections.domain_id');
  return visible(query, kind, scope);
}
