/**
 * What somebody with certain hosts may see: the one place that says to which hosts each object belongs. What is of `*`,
 * or of a host without a domain, is only for those who may see everything.
 */
import type { Knex } from 'knex';
import type { Scope } from '../model/permission.js';
import type { Store } from './database.js';

/** Kinds of objects, by which paths of the API and members of bodies name them. */
export type ResourceKind =
  | 'domain'
  | 'collection'
  | 'endpoint'
  | 'service'
  | 'build'
  | 'import'
  | 'job'
  | 'alert'
  | 'apply'
  | 'host';

/** SQL: whether the row of the table is visible with the hosts `:hosts`. */
const ENDPOINT = `(endpoints.domain = ANY(:hosts) AND EXISTS (
  SELECT FROM domains WHERE domains.host = endpoints.domain))`;
const ofEndpoint = (id: string) =>
  `EXISTS (SELECT FROM endpoints WHERE endpoints.id = ${id} AND ${ENDPOINT})`;
const SERVICE = `(services.domains = '{}' OR services.domains && :hosts)`;
/** The same for what nobody else has a share in. Alerts about other services are of those who see everything. */
const OWN_SERVICE = `(services.domains <> '{}' AND services.domains <@ :hosts)`;

const VISIBLE: Readonly<Record<Exclude<ResourceKind, 'host'>, string>> = {
  domain: 'domains.host = ANY(:hosts)',
  collection: 'EXISTS (SELECT FROM domains WHERE domains.id = collections.domain_id AND host = ANY(:hosts))',
  endpoint: ENDPOINT,
  service: SERVICE,
  // The newest of an endpoint, or one of a source that an endpoint has had.
  build: `EXISTS (SELECT FROM endpoints WHERE ${ENDPOINT} AND (endpoints.build_id = builds.id OR EXISTS (
    SELECT FROM endpoint_versions AS versions
     WHERE versions.endpoint_id = endpoints.id AND versions.source_key = builds.source_key)))`,
  // All endpoints that it made and that still exist, at least one.
  import: `(SELECT coalesce(bool_and(${ENDPOINT}), false) FROM endpoints WHERE endpoints.id IN (
    SELECT (imported->>'id')::uuid FROM jsonb_array_elements(imports.outcome->'endpoints') AS imported))`,
  job: ofEndpoint('jobs.endpoint_id'),
  // An apply that also concerns others is not visible to them.
  apply: `(applies.hosts <> '{}' AND applies.hosts <@ :hosts)`,
  alert: `(alerts.scope->>'domain' = ANY(:hosts)
    OR ${ofEndpoint("(alerts.scope->>'endpoint_id')::uuid")}
    OR EXISTS (SELECT FROM services WHERE services.id = (alerts.scope->>'service_id')::uuid AND ${OWN_SERVICE}))`,
};

/** SQL: whether a visible row has nothing that somebody else has a share in, so that it may be changed. */
const OWN: Partial<Record<ResourceKind, string>> = {
  domain: `NOT EXISTS (SELECT FROM endpoints JOIN collections ON collections.id = endpoints.collection_id
    WHERE collections.domain_id = domains.id AND NOT ${ENDPOINT})`,
  collection: `NOT EXISTS (SELECT FROM endpoints
    WHERE endpoints.collection_id = collections.id AND NOT ${ENDPOINT})`,
  service: OWN_SERVICE,
  // Endpoints with the same code share a build, and applies wait for those that no endpoint has yet.
  build: `(builds.owner IS NULL OR builds.owner = ANY(:hosts))
    AND NOT EXISTS (SELECT FROM endpoints WHERE endpoints.build_id = builds.id AND NOT ${ENDPOINT})`,
};

const TABLES: Readonly<Record<Exclude<ResourceKind, 'host'>, string>> = {
  ...{ domain: 'domains', collection: 'collections', endpoint: 'endpoints', service: 'services' },
  ...{ build: 'builds', import: 'imports', job: 'jobs', alert: 'alerts', apply: 'applies' },
};

/** Leaves in a query of the table of this kind only rows that are visible. */
export function visible<Q extends Knex.QueryBuilder>(
  query: Q,
  kind: Exclude<ResourceKind, 'host'>,
  scope: Scope,
): Q {
  if (scope) query.whereRaw(VISIBLE[kind], { hosts: [...scope] } as never);
  return query;
}

/** Leaves in a query only rows whose endpoint, in this column, is visible. */
export function ofVisibleEndpoints<Q extends Knex.QueryBuilder>(query: Q, column: string, scope: Scope): Q {
  if (scope) query.whereRaw(ofEndpoint(column), { hosts: [...scope] } as never);
  return query;
}

/** Whether there is such an object, as far as somebody with these hosts can see. */
export async function isVisible(
  store: Store,
  kind: ResourceKind,
  id: string,
  scope: Scope,
): Promise<boolean> {
  if (!scope) return true;
  if (kind === 'host') return scope.includes(id.toLowerCase());
  const query = visible(store.knex(TABLES[kind]).where({ id }), kind, scope);
  return (await query.first('id')) !== undefined;
}

/** Whether somebody with these hosts may change a visible object: others have no share in it. */
export async function isOwn(store: Store, kind: ResourceKind, id: string, scope: Scope): Promise<boolean> {
  const own = OWN[kind];
  if (!scope || own === undefined || kind === 'host') return true;
  const query = store
    .knex(TABLES[kind])
    .where({ id })
    .whereRaw(own, { hosts: [...scope] } as never);
  return (await query.first('id')) !== undefined;
}
