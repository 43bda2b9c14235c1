/** The tree of domains, collections and endpoints, as rows of a list. */
import type { BriefEndpoint, Collection, Domain } from '../generated/routes.js';

export type Row =
  | { readonly kind: 'domain'; readonly host: string; readonly domain: Domain | undefined }
  | { readonly kind: 'collection'; readonly host: string; readonly collection: Collection }
  | { readonly kind: 'endpoint'; readonly endpoint: BriefEndpoint };

interface Tree {
  /** Endpoints that have been read, by host, within that by collection, as the API sorts them. */
  readonly endpoints: readonly BriefEndpoint[];
  readonly domains: readonly Domain[];
  readonly collections: readonly Collection[];
  /** Whether all endpoints have been read. */
  readonly isWhole: boolean;
  /** Whether domains and collections without endpoints are shown, too. */
  readonly hasEmpty: boolean;
  readonly isClosed: (host: string) => boolean;
}

export function rowKey(row: Row): string {
  if (row.kind === 'endpoint') return row.endpoint.id;
  return row.kind === 'domain' ? `domain ${row.host}` : row.collection.id;
}

export function rowsOf({ endpoints, domains, collections, isWhole, hasEmpty, isClosed }: Tree): Row[] {
  const domainOf = new Map(domains.map((domain) => [domain.host, domain]));
  const collectionsOf = groupBy(collections, ({ domain_id }) => domain_id);
  const collectionById = new Map(collections.map((collection) => [collection.id, collection]));
  const endpointsOf = groupBy(endpoints, ({ domain }) => domain);
  const lastRead = endpoints.at(-1)?.domain;
  const hosts = new Set(endpointsOf.keys());
  // Behind the last one that was read there may be endpoints of others.
  if (hasEmpty)
    for (const host of domainOf.keys()) if (isWhole || (lastRead && host < lastRead)) hosts.add(host);

  return [...hosts].sort().flatMap((host): Row[] => {
    const domain = domainOf.get(host);
    const head: Row = { kind: 'domain', host, domain };
    if (isClosed(host)) return [head];
    const ofCollection = groupBy(endpointsOf.get(host) ?? [], ({ collection_id }) => collection_id);
    const isRead = isWhole || host !== lastRead;
    const empty = domain && hasEmpty && isRead ? (collectionsOf.get(domain.id) ?? []) : [];
    // Those of endpoints on any host belong to another domain.
    const used = [...ofCollection.keys()].flatMap((id) => (id && collectionById.get(id)) || []);
    const groups = [...new Set([...used, ...empty])].sort((one, other) => (one.name < other.name ? -1 : 1));
    return [
      head,
      ...(ofCollection.get(null) ?? []).map(endpointRow),
      ...groups.flatMap((collection): Row[] => [
        { kind: 'collection', host, collection },
        ...(ofCollection.get(collection.id) ?? []).map(endpointRow),
      ]),
    ];
  });
}

function endpointRow(endpoint: BriefEndpoint): Row {
  return { kind: 'endpoint', endpoint };
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
