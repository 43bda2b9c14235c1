/** Reads the whole installation as objects with natural keys, all of one moment. */

import type { StoredObject } from '../apply/changes.js';
import { someOrNull, sortedSchedules } from '../apply/normal.js';
import type {
  CollectionObject,
  DomainObject,
  EndpointObject,
  ScheduleObject,
  ServiceObject,
} from '../apply/objects.js';
import { mapInParts, Pauses } from '../util/pauses.js';
import type { Store } from './database.js';

/** A service whose config is encrypted. */
export type SealedService = Omit<ServiceObject, 'config'> & { readonly config_encrypted: string };

export interface StoredInstallation {
  readonly domains: readonly StoredObject<DomainObject>[];
  readonly collections: readonly StoredObject<CollectionObject>[];
  readonly endpoints: readonly StoredObject<EndpointObject>[];
  readonly services: readonly StoredObject<SealedService>[];
  /** Names of the secrets of the installation. */
  readonly secrets: ReadonlySet<string>;
  /** Names of secrets of a domain, collection or endpoint, by its id. */
  readonly ownSecrets: ReadonlyMap<string, readonly string[]>;
}

/**
 * Whether the newest code of a row of `endpoints` is what serves, alone: then true; `other` when something else serves.
 */
const RUNNING = `CASE WHEN deployments.id IS NULL OR jsonb_array_length(deployments.targets) = 0 THEN 'false'
  WHEN jsonb_array_length(deployments.targets) = 1 AND EXISTS (
    SELECT FROM endpoint_versions AS versions
     WHERE versions.endpoint_id = endpoints.id AND versions.source_key = endpoints.source_key
       AND versions.version = (deployments.targets->0->>'version')::integer) THEN 'true'
  ELSE 'other' END`;

const DOMAINS = `SELECT id, host, name, description, enabled, policies, stack FROM domains ORDER BY host`;

const COLLECTIONS = `
  SELECT collections.id, host, collections.name, collections.description, base_path, collections.enabled,
         collections.policies, collections.stack
    FROM collections JOIN domains ON domains.id = domain_id ORDER BY host, collections.name`;

const ENDPOINTS = `
  SELECT endpoints.id, endpoints.domain AS host, method, route, path, endpoints.name, collections.name AS collection,
         domains.host AS collection_host, endpoints.description, endpoints.enabled, code, edition, entry, files,
         dependencies, lock, limits, endpoints.policies, endpoints.stack, ${RUNNING} AS running
    FROM endpoints
    LEFT JOIN collections ON collections.id = endpoints.collection_id
    LEFT JOIN domains ON domains.id = collections.domain_id
    LEFT JOIN deployments ON deployments.id = endpoints.desired_deployment_id
   ORDER BY endpoints.domain, route, method`;

const SERVICES = `
  SELECT id, name, service_type, config_encrypted, enabled, domains, activated_at IS NOT NULL AS active, stack
    FROM services ORDER BY name`;

const VARIABLES = `
  SELECT coalesce(domain_id, collection_id, endpoint_id) AS owner_id, name, value FROM variables ORDER BY name`;

const BINDINGS = `
  SELECT endpoint_id, pool_id, name FROM endpoint_services JOIN services ON services.id = service_id ORDER BY pool_id`;

// PostgreSQL breaks the lines of base64.
const SCHEDULES = `
  SELECT endpoint_id, cron, timezone, enabled, method, path, headers,
         nullif(translate(encode(body, 'base64'), E'\\n', ''), '') AS body
    FROM schedules ORDER BY created_at, id`;

type Row<T> = Omit<T, 'kind'> & { readonly id: string };
type StoredEndpoint = Row<Omit<EndpointObject, 'running' | 'variables' | 'bindings' | 'schedules'>> & {
  readonly running: 'true' | 'false' | 'other';
};

/** @returns every object; whoever may see some only has to leave out the others */
export async function readInstallation(store: Store): Promise<StoredInstallation> {
  return store.knex.transaction((trx) => readInstallationIn({ ...store, knex: trx }), {
    isolationLevel: 'repeatable read',
    readOnly: true,
  });
}

/** The same within a transaction that has locked what it is about to change. */
export async function readInstallationIn(store: Store): Promise<StoredInstallation> {
  const all = async <T>(sql: string) => (await store.knex.raw<{ rows: T[] }>(sql)).rows;
  const variables = await all<{ owner_id: string; name: string; value: string | null }>(VARIABLES);
  const plain = await grouped(
    variables.filter(({ value }) => value !== null),
    ({ owner_id }) => owner_id,
  );
  const hidden = await grouped(
    variables.filter(({ value }) => value === null),
    ({ owner_id }) => owner_id,
  );
  const variablesOf = (id: string) =>
    Object.fromEntries((plain.get(id) ?? []).map(({ name, value }) => [name, value ?? '']));
  const bindings = await grouped(
    await all<{ endpoint_id: string; pool_id: string; name: string }>(BINDINGS),
    ({ endpoint_id }) => endpoint_id,
  );
  const schedules = await grouped(
    await all<ScheduleObject & { endpoint_id: string }>(SCHEDULES),
    ({ endpoint_id }) => endpoint_id,
  );
  const domains = await all<Row<Omit<DomainObject, 'variables'>>>(DOMAINS);
  const collections = await all<Row<Omit<CollectionObject, 'variables'>>>(COLLECTIONS);
  const endpoints = await all<StoredEndpoint>(ENDPOINTS);
  const services = await all<Row<SealedService>>(SERVICES);
  const secrets = await all<{ name: string }>('SELECT name FROM installation_secrets');
  return {
    domains: await mapInParts(domains, ({ id, ...row }) => ({
      id,
      object: { kind: 'domain', ...row, policies: someOrNull(row.policies), variables: variablesOf(id) },
    })),
    collections: await mapInParts(collections, ({ id, ...row }) => ({
      id,
      object: {
        kind: 'collection',
        ...row,
        policies: someOrNull(row.policies),
        variables: variablesOf(id),
      },
    })),
    endpoints: await mapInParts(endpoints, async ({ id, running, ...row }) => ({
      id,
      object: {
        kind: 'endpoint',
        ...row,
        // Without code, files and a lock say nothing, and no folder can say them.
        ...(row.code === null && { entry: null, files: null, lock: null }),
        dependencies: someOrNull(row.dependencies),
        limits: someOrNull(row.limits),
        policies: someOrNull(row.policies),
        variables: variablesOf(id),
        bindings: Object.fromEntries((bindings.get(id) ?? []).map(({ pool_id, name }) => [pool_id, name])),
        schedules: await sortedSchedules(
          (schedules.get(id) ?? []).map(({ endpoint_id: _, ...schedule }) => schedule),
        ),
        running: running === 'other' ? running : running === 'true',
      },
    })),
    services: await mapInParts(services, ({ id, domains: hosts, ...row }) => ({
      id,
      object: { kind: 'service', ...row, domains: hosts.toSorted() },
    })),
    secrets: new Set(secrets.map(({ name }) => name)),
    ownSecrets: new Map([...hidden].map(([id, rows]) => [id, rows.map(({ name }) => name)])),
  };
}

async function grouped<T>(rows: readonly T[], keyOf: (row: T) => string): Promise<ReadonlyMap<string, T[]>> {
  const groups = new Map<string, T[]>();
  const pauses = new Pauses();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
    await pauses.here();
  }
  return groups;
}
