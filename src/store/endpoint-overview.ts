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
  /** Finished requests of the last hour. */
  readonly requests: number;
  /** Those of the versions that are to serve now, and of these the ones with a status of 500 or more. */
  readonly serving_requests: number;
  readonly errors: number;
}

/** What is failing: does not serve because of an error, or has answered with one. */
export interface OverviewFilter {
  readonly domain?: string | undefined;
  readonly failing?: boolean | undefined;
}

const LAST_HOUR = `figures.step = 60 AND figures.at > now() - interval '1 hour'`;
/**
 * SQL, after FROM and up to a condition: the figures of what serves, without those of what served before, so that who
 * has gone back to an older version sees whether that has helped.
 */
const FIGURES_OF_SERVING = `figures
  JOIN endpoints AS deployed ON deployed.id = figures.endpoint_id
  LEFT JOIN deployments ON deployments.id = deployed.desired_deployment_id
 WHERE (deployments.id IS NULL OR deployments.targets = '[]'
        OR deployments.targets @> jsonb_build_array(jsonb_build_object('version', figures.version)))
   AND ${LAST_HOUR}`;
const FIGURES_OF_ALL = `figures WHERE ${LAST_HOUR}`;
const sumOf = (sum: string, figures: string, id: string) =>
  `(SELECT coalesce(sum(${sum}), 0)::integer FROM ${figures} AND figures.endpoint_id = ${id})`;
const REQUESTS = 'status_2xx + status_3xx + status_4xx + status_5xx + status_other';
const runningIn = (table: string) => `
  FROM observations JOIN nodes ON nodes.id = observations.node_id
 WHERE observations.endpoint_id = ${table}.id AND observations.state = 'running' AND ${IS_LIVE_NODE}`;
const COLUMNS = `
  listed.id, listed.name, listed.method, listed.route, listed.domain, listed.collection_id, listed.collection,
  listed.enabled, listed.status,
  EXISTS (SELECT ${runningIn('listed')}) AS running,
  coalesce((SELECT bool_and(observations.serving = '[]') ${runningIn('listed')}), false) AS asleep,
  ${sumOf(REQUESTS, FIGURES_OF_ALL, 'listed.id')} AS requests,
  ${sumOf(REQUESTS, FIGURES_OF_SERVING, 'listed.id')} AS serving_requests,
  ${sumOf('status_5xx', FIGURES_OF_SERVING, 'listed.id')} AS errors`;
/**
 * SQL: the sort key by host, within that by collection, those without one first, and within that by route and method.
 * No name has U+0001.
 */
const BY_ROUTE = `concat_ws(E'\\x01', endpoints.domain, coalesce(collections.name, ''), endpoints.route, endpoints.method)
  COLLATE "C"`;
/** Where newer code fails while a version serves, its author knows, and no request fails. */
const IS_DOWN = `(endpoints.status = 'error' AND NOT EXISTS (SELECT ${runningIn('endpoints')}))`;
const IS_FAILING = `(${IS_DOWN} OR endpoints.id IN (
  SELECT figures.endpoint_id FROM ${FIGURES_OF_SERVING} AND status_5xx > 0))`;
/** The worst first: what does not serve, then by the share of errors, then by their number. */
const BY_SEVERITY = `(
  SELECT concat_ws(E'\\x01', CASE WHEN ${IS_DOWN} THEN 0 ELSE 1 END,
                   to_char(1 - errors::numeric / greatest(requests, 1), '0.000000'),
                   to_char(9999999999 - errors, '0000000000'), ${BY_ROUTE})
    FROM (SELECT ${sumOf(REQUESTS, FIGURES_OF_SERVING, 'endpoints.id')} AS requests,
                 ${sumOf('status_5xx', FIGURES_OF_SERVING, 'endpoints.id')} AS errors) AS last_hour) COLLATE "C"`;

const ORDER: ListOrder = {
  key: { column: 'listed.sort_key', type: 'text' },
  tie: { column: 'listed.id', type: 'uuid' },
  direction: 'asc',
  searched: ['listed.name', 'listed.address', 'listed.collection'],
};

/** A page of them: by host, collection and route, and of those that fail the worst first. */
export async function listBriefEndpoints(
  store: Store,
  { domain, failing }: OverviewFilter,
  options: ListOptions,
): Promise<Page<BriefEndpoint>> {
  const { knex } = store;
  const listed = knex('endpoints')
    .leftJoin('collections', 'collections.id', 'endpoints.collection_id')
    .select(
      'endpoints.*',
      'collections.name as collection',
      knex.raw(`${failing ? BY_SEVERITY : BY_ROUTE} AS sort_key`),
    )
    // The address as people write it: a method, and a host with a path.
    .select(knex.raw(`concat(endpoints.method, ' ', endpoints.domain, endpoints.route) AS address`));
  if (domain !== undefined) listed.where('endpoints.domain', domain);
  if (failing) listed.whereRaw(IS_FAILING);
  visible(listed, 'endpoint', options.scope);
  const { scope: _seen, ...page } = options;
  return readPage(store, knex.from(listed.as('listed')).select(knex.raw(COLUMNS)), ORDER, page);
}
