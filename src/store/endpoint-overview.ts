/** Endpoints in brief, in the order in which people look for them, with how they do. */
import type { EndpointMethod } from '../model/endpoint-method.js';
import type { Store } from './database.js';
import type { EndpointStatus } from './endpoints.js';
import { IS_LIVE_NODE } from './nodes.js';
import { type ListOptions, type ListOrder, type Page, readPage } from './pages.js';
import { visible } from './visibility.js';

export interface BriefEndpoint {
  readonly id: string;
  readonly name: string;
  readonly method: EndpointMethod;
  /** Base path and path joined. */
  readonly route: string;
  readonly domain: string;
  readonly collection_id: string | null;
  readonly collection: string | null;
  readonly enabled: boolean;
  readonly status: EndpointStatus;
  /** A live gateway serves it, also while the status is that of newer code. */
  readonly running: boolean;
  /** Runs, but without a process until the next request. */
  readonly asleep: boolean;
  /** Finished requests of the last hour, and those with a status of 500 or more. */
  readonly requests: number;
  readonly errors: number;
}

/** What is failing: cannot run, or has answered with an error. */
export interface OverviewFilter {
  readonly domain?: string | undefined;
  readonly failing?: boolean | undefined;
}

const LAST_HOUR = `step = 60 AND at > now() - interval '1 hour'`;
const OF_LAST_HOUR = (sum: string) =>
  `(SELECT coalesce(sum(${sum}), 0)::integer FROM figures
     WHERE figures.endpoint_id = listed.id AND ${LAST_HOUR})`;
const COLUMNS = `
  listed.id, listed.name, listed.method, listed.route, listed.domain, listed.collection_id, listed.collection,
  listed.enabled, listed.status,
  EXISTS (SELECT FROM observations JOIN nodes ON nodes.id = observations.node_id
           WHERE observations.endpoint_id = listed.id AND observations.state = 'running' AND ${IS_LIVE_NODE}) AS running,
  coalesce((SELECT bool_and(observations.serving = '[]') FROM observations JOIN nodes ON nodes.id = observations.node_id
             WHERE observations.endpoint_id = listed.id AND observations.state = 'running' AND ${IS_LIVE_NODE}), false)
    AS asleep,
  ${OF_LAST_HOUR('status_2xx + status_3xx + status_4xx + status_5xx + status_other')} AS requests,
  ${OF_LAST_HOUR('status_5xx')} AS errors`;
/** By host, within that by collection, those without one first, and within that by route. No name has U+0001. */
const SORT_KEY = `concat_ws(E'\\x01', endpoints.domain, coalesce(collections.name, ''), endpoints.route, endpoints.method)
  COLLATE "C"`;
const IS_FAILING = `(endpoints.status = 'error' OR endpoints.id IN (
  SELECT endpoint_id FROM figures WHERE ${LAST_HOUR} AND status_5xx > 0))`;

const ORDER: ListOrder = {
  key: { column: 'listed.sort_key', type: 'text' },
  tie: { column: 'listed.id', type: 'uuid' },
  direction: 'asc',
  searched: ['listed.name', 'listed.address', 'listed.collection'],
};

/** A page of them. */
export async function listBriefEndpoints(
  store: Store,
  { domain, failing }: OverviewFilter,
  options: ListOptions,
): Promise<Page<BriefEndpoint>> {
  const { knex } = store;
  const listed = knex('endpoints')
    .leftJoin('collections', 'collections.id', 'endpoints.collection_id')
    .select('endpoints.*', 'collections.name as collection', knex.raw(`${SORT_KEY} AS sort_key`))
    // As people write it: a method, and a host with a path.
    .select(knex.raw(`concat(endpoints.method, ' ', endpoints.domain, endpoints.route) AS address`));
  if (domain !== undefined) listed.where('endpoints.domain', domain);
  if (failing) listed.whereRaw(IS_FAILING);
  visible(listed, 'endpoint', options.scope);
  const { scope: _seen, ...page } = options;
  return readPage(store, knex.from(listed.as('listed')).select(knex.raw(COLUMNS)), ORDER, page);
}
