/** `edge endpoint|collection|domain|service list|show|delete`. */

import type { ApiClient } from '../client.js';
import type { Collection, Domain, Endpoint, Service } from '../generated/routes.js';
import { idOf, type Kind, requireHost } from '../names.js';
import { confirm } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';
import { isCode } from '../session.js';
import { safeText, timeOf } from '../text.js';

interface ListOptions extends CommonOptions {
  readonly search?: string;
  readonly domain?: string;
  readonly collection?: string;
}

/** How one kind of objects is read and shown. */
interface ObjectKindView<Item> {
  list(session: Session, options: ListOptions): Promise<Item[]>;
  get(api: ApiClient, id: string): Promise<Item>;
  remove(api: ApiClient, id: string): Promise<{ readonly warnings: readonly string[] }>;
  /** What rows and details need besides. */
  names(session: Session): Promise<Names>;
  readonly head: readonly string[];
  row(item: Item, names: Names): readonly string[];
  details(item: Item, names: Names): readonly (readonly [string, string])[];
}

/** Collections and domains by their ids, as far as one may see them. */
interface Names {
  readonly collections: ReadonlyMap<string, Collection>;
  readonly hosts: ReadonlyMap<string, string>;
}

/** As lists have it, too. */
type EndpointItem = Omit<Endpoint, 'files' | 'lock'>;

const endpoints: ObjectKindView<EndpointItem> = {
  list: async (session, { search, domain, collection }) => {
    const id = collection === undefined ? undefined : await idOf(session, 'collection', collection);
    return session.api.all('GET /api/endpoints', {
      query: { limit: 1000, ...given({ search, domain, collection_id: id }) },
    });
  },
  get: (api, id) => api.get('GET /api/endpoints/{id}', { params: { id } }),
  remove: (api, id) => api.call('DELETE /api/endpoints/{id}', { params: { id } }),
  names: namesOf,
  head: ['name', 'method', 'route', 'status', 'version'],
  row: (one, names) => [
    fullName(one, names),
    one.method,
    routeOf(one, names),
    statusOf(one),
    one.running_version === null ? '' : String(one.running_version),
  ],
  details: (one, names) => [
    ['name', fullName(one, names)],
    ['id', one.id],
    ['serves', `${one.method} ${one.domain}${routeOf(one, names)}`],
    ['status', statusOf(one)],
    ...(one.last_error === null ? [] : ([['error', one.last_error]] as const)),
    [
      'versions',
      (one.deployment?.targets ?? []).map(({ version, percent }) => `${version}: ${percent} %`).join(', '),
    ],
    ['newest version', one.latest_version === null ? 'none' : String(one.latest_version)],
    ['errors of the last hour', String(one.recent_errors)],
    ...(one.last_failure === null ? [] : ([['last failure', failureOf(one.last_failure)]] as const)),
    ['changed', timeOf(one.updated_at)],
  ],
};

const collections: ObjectKindView<Collection> = {
  list: async (session, { search, domain }) => {
    const domain_id = domain === undefined ? undefined : await idOf(session, 'domain', domain);
    const all = await session.api.all('GET /api/collections', { query: given({ domain_id }) });
    return all.filter(
      ({ name }) => search === undefined || name.toLowerCase().includes(search.toLowerCase()),
    );
  },
  get: (api, id) => api.get('GET /api/collections/{id}', { params: { id } }),
  remove: (api, id) => api.call('DELETE /api/collections/{id}', { params: { id } }),
  names: namesOf,
  head: ['name', 'base path', 'enabled'],
  row: (one, { hosts }) => [
    `${hosts.get(one.domain_id) ?? one.domain_id}/${one.name}`,
    one.base_path ?? '',
    yesOrNo(one.enabled),
  ],
  details: (one, { hosts }) => [
    ['name', `${hosts.get(one.domain_id) ?? one.domain_id}/${one.name}`],
    ['id', one.id],
    ['base path', one.base_path ?? 'none'],
    ['description', one.description ?? ''],
    ['enabled', yesOrNo(one.enabled)],
    ['changed', timeOf(one.updated_at)],
  ],
};

const domains: ObjectKindView<Domain> = {
  list: (session, { search }) =>
    session.api.all('GET /api/domains', { query: { limit: 1000, ...given({ search }) } }),
  get: (api, id) => api.get('GET /api/domains/{id}', { params: { id } }),
  remove: (api, id) => api.call('DELETE /api/domains/{id}', { params: { id } }),
  names: async () => ({ collections: new Map(), hosts: new Map() }),
  head: ['host', 'name', 'enabled'],
  row: ({ host, name, enabled }) => [host, name, yesOrNo(enabled)],
  details: (one) => [
    ['host', one.host],
    ['id', one.id],
    ['name', one.name],
    ['description', one.description ?? ''],
    ['enabled', yesOrNo(one.enabled)],
    ['changed', timeOf(one.updated_at)],
  ],
};

const services: ObjectKindView<Service> = {
  list: (session, { search }) =>
    session.api.all('GET /api/services', { query: { limit: 1000, ...given({ search }) } }),
  get: (api, id) => api.get('GET /api/services/{id}', { params: { id } }),
  remove: (api, id) => api.call('DELETE /api/services/{id}', { params: { id } }),
  names: async () => ({ collections: new Map(), hosts: new Map() }),
  head: ['name', 'type', 'state', 'for'],
  row: (one) => [one.name, one.service_type, one.state, one.domains.join(', ') || 'all'],
  details: (one) => [
    ['name', one.name],
    ['id', one.id],
    ['type', one.service_type],
    ['state', one.state],
    ['message', one.state_message ?? ''],
    ['for', one.domains.join(', ') || 'all domains'],
    ['config', '`--json` shows it'],
    ['changed', timeOf(one.updated_at)],
  ],
};

const SHOWN: { readonly [K in Kind]: ObjectKindView<never> } = {
  endpoint: endpoints as ObjectKindView<never>,
  collection: collections as ObjectKindView<never>,
  domain: domains as ObjectKindView<never>,
  service: services as ObjectKindView<never>,
};

export function listOf(kind: Kind) {
  const { list, names, head, row } = SHOWN[kind];
  return async (session: Session, options: ListOptions): Promise<void> => {
    const [items, known] = await Promise.all([
      list(session, options),
      session.out.json ? undefined : names(session),
    ]);
    if (items.length === 0) await requireHost(session, options.domain);
    session.out.result(items, () => {
      if (items.length === 0) session.out.note(`There are no ${kind}s.`);
      else if (known)
        session.out.table(
          head,
          items.map((item) => row(item, known)),
        );
    });
  };
}

export function showOf(kind: Kind) {
  const { get, names, details } = SHOWN[kind];
  return async (session: Session, _options: CommonOptions, name: string): Promise<void> => {
    const item = await get(session.api, await idOf(session, kind, name));
    const known = session.out.json ? undefined : await names(session);
    session.out.result(item, () => {
      if (known) session.out.list(details(item, known));
    });
  };
}

export function deleteOf(kind: Kind) {
  const { remove } = SHOWN[kind];
  const also = kind === 'domain' || kind === 'collection' ? ' with its endpoints' : '';
  return async (session: Session, { yes }: CommonOptions & { readonly yes?: boolean }, name: string) => {
    const id = await idOf(session, kind, name);
    await confirm(session, `Delete the ${kind} ${name}${also}?`, yes);
    const { warnings } = await remove(session.api, id);
    session.out.warnings(warnings);
    session.out.result({ kind, id, deleted: true }, () =>
      session.out.line(safeText(`Deleted: ${kind} ${name}`)),
    );
  };
}

async function namesOf({ api }: Session): Promise<Names> {
  const [allCollections, allDomains] = await Promise.all([
    api.all('GET /api/collections').catch(noneIfForbidden),
    api.all('GET /api/domains', { query: { limit: 1000 } }).catch(noneIfForbidden),
  ]);
  return {
    collections: new Map(allCollections.map((one) => [one.id, one])),
    hosts: new Map(allDomains.map(({ id, host }) => [id, host])),
  };
}

/** Names are shown to those who may see them. */
function noneIfForbidden(thrown: unknown): [] {
  if (isCode(thrown, 'forbidden')) return [];
  throw thrown;
}

function collectionOf({ collection_id }: EndpointItem, names: Names): Collection | undefined {
  return collection_id === null ? undefined : names.collections.get(collection_id);
}

function fullName(one: EndpointItem, names: Names): string {
  const collection = collectionOf(one, names);
  return [one.domain, ...(collection ? [collection.name] : []), one.name].join('/');
}

function routeOf(one: EndpointItem, names: Names): string {
  return `${collectionOf(one, names)?.base_path ?? ''}${one.path}`;
}

function statusOf({ status, enabled, pid, running }: EndpointItem): string {
  const state = status === 'running' && running && pid === null ? 'running (asleep)' : status;
  return enabled ? state : `${state}, disabled`;
}

function failureOf({ at, message, place }: NonNullable<Endpoint['last_failure']>): string {
  return `${timeOf(at)} ${message}${place === null ? '' : ` (${place})`}`;
}

function yesOrNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

/** Without what is undefined. */
function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
