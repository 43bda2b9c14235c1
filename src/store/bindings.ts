/** The table `endpoint_services`: which services the code of an endpoint may use, and under which names. */
import { AppError } from '../errors.js';
import type { EndpointMethod } from '../model/endpoint-method.js';
import type { Scope } from '../model/permission.js';
import { type Store, transaction, violatedConstraint, violatedForeignKey } from './database.js';
import { insertInto } from './insert.js';
import type { Service } from './services.js';
import { visible } from './visibility.js';

/** A row. */
export interface Binding {
  readonly endpoint_id: string;
  readonly service_id: string;
  /** The name by which handler code refers to the service; one endpoint has it once. */
  readonly pool_id: string;
  readonly created_at: Date;
}

/** The part of a service that actor hosts need when its bindings change. */
export type BoundService = Pick<Service, 'id' | 'version'>;

const insertBinding = insertInto<Omit<Binding, 'created_at'>, Binding>('endpoint_services', [
  'endpoint_id',
  'service_id',
  'pool_id',
]);

export async function listBindings(store: Store, endpointId: string): Promise<Binding[]> {
  return store
    .knex<Binding>('endpoint_services')
    .where({ endpoint_id: endpointId })
    .orderBy(['created_at', 'pool_id']);
}

/** An endpoint that uses a service, and the name by which its code does so. */
export interface UsingEndpoint {
  readonly id: string;
  readonly name: string;
  readonly method: EndpointMethod;
  readonly domain: string;
  readonly path: string;
  /** The path with the base path of its collection. */
  readonly route: string;
  readonly pool_id: string;
}

/** The endpoints that use a service, as far as they are visible, by host and path. */
export async function endpointsUsing(
  store: Store,
  serviceId: string,
  scope: Scope,
): Promise<UsingEndpoint[]> {
  const query = store
    .knex('endpoint_services')
    .join('endpoints', 'endpoints.id', 'endpoint_services.endpoint_id')
    .where({ service_id: serviceId })
    .orderBy(['endpoints.domain', 'endpoints.route', 'endpoints.method', 'pool_id'])
    .select(
      ...['id', 'name', 'method', 'domain', 'path', 'route'].map((column) => `endpoints.${column}`),
      'pool_id',
    );
  return visible(query, 'endpoint', scope) as unknown as Promise<UsingEndpoint[]>;
}

/**
 * @returns the binding, and the service with its new version
 * @throws AppError not_found (endpoint or service) or pool_id_taken
 */
export async function createBinding(
  store: Store,
  binding: Omit<Binding, 'created_at'>,
): Promise<{ readonly binding: Binding; readonly service: BoundService }> {
  try {
    return await transaction(store, async (tx) => {
      const created = await insertBinding(tx, binding);
      await requireForDomain(tx, binding);
      return { binding: created, service: await incrementVersion(tx, binding.service_id) };
    });
  } catch (thrown) {
    throw await bindingError(store, binding, thrown);
  }
}

/** A service that is for certain domains does not exist for endpoints of others. */
async function requireForDomain(
  tx: Store,
  { endpoint_id, service_id }: Pick<Binding, 'endpoint_id' | 'service_id'>,
): Promise<void> {
  const { rowCount } = await tx.knex.raw<{ rowCount: number }>(
    `SELECT FROM services, endpoints WHERE services.id = ? AND endpoints.id = ?
        AND (services.domains = '{}' OR endpoints.domain = ANY(services.domains))`,
    [service_id, endpoint_id],
  );
  if (rowCount === 0)
    throw new AppError(
      'not_found',
      `The service ${service_id} does not exist for the domain of the endpoint`,
    );
}

/**
 * The same for endpoints that get another domain. They are locked, so that none is bound meanwhile.
 * @throws AppError service_not_for_domain
 */
export async function requireServicesForDomain(
  tx: Store,
  endpointIds: readonly string[],
  domain: string,
): Promise<void> {
  const { rows } = await tx.knex.raw<{ rows: (Omit<Binding, 'created_at'> & { readonly name: string })[] }>(
    `SELECT endpoint_id, service_id, pool_id, endpoints.name
       FROM endpoint_services JOIN services ON services.id = service_id JOIN endpoints ON endpoints.id = endpoint_id
      WHERE endpoint_id = ANY(?) AND services.domains <> '{}' AND ? <> ALL(services.domains)
      ORDER BY endpoint_id, pool_id LIMIT 1`,
    [[...endpointIds], domain],
  );
  const [first] = rows;
  if (!first) return;
  const { endpoint_id, service_id, pool_id, name } = first;
  throw new AppError(
    'service_not_for_domain',
    `The endpoint "${name}" (${endpoint_id}) has the service ${service_id} bound as "${pool_id}", which is not for the ` +
      `domain "${domain}"; unbind it first (DELETE /api/endpoints/${endpoint_id}/services/${service_id}), or add the ` +
      'domain to those of the service',
    { details: { endpoint_id, service_id, pool_id } },
  );
}

/**
 * Removes a service from an endpoint, under all its names.
 * @returns the names, and the service with its new version; undefined when it is not bound
 */
export async function deleteBindings(
  store: Store,
  endpointId: string,
  serviceId: string,
): Promise<{ readonly poolIds: string[]; readonly service: BoundService } | undefined> {
  return transaction(store, async (tx) => {
    const deleted = await tx
      .knex<Binding>('endpoint_services')
      .where({ endpoint_id: endpointId, service_id: serviceId })
      .delete()
      .returning('pool_id');
    if (deleted.length === 0) return undefined;
    const poolIds = deleted.map(({ pool_id }) => pool_id).sort();
    return { poolIds, service: await incrementVersion(tx, serviceId) };
  });
}

/**
 * Gives an endpoint these services, by the names that its code uses, and no others. Its row is locked.
 * @returns the services whose bindings have changed, with their new versions
 * @throws AppError not_found when a service is not for the domain of the endpoint
 */
export async function replaceBindings(
  tx: Store,
  endpointId: string,
  serviceIds: Readonly<Record<string, string>>,
): Promise<BoundService[]> {
  const before = await tx
    .knex<Binding>('endpoint_services')
    .where({ endpoint_id: endpointId })
    .select('pool_id', 'service_id');
  const gone = before.filter(({ pool_id, service_id }) => serviceIds[pool_id] !== service_id);
  const added = Object.entries(serviceIds)
    .map(([pool_id, service_id]) => ({ endpoint_id: endpointId, pool_id, service_id }))
    .filter(({ pool_id, service_id }) =>
      before.every((one) => one.pool_id !== pool_id || one.service_id !== service_id),
    );
  await tx
    .knex('endpoint_services')
    .where({ endpoint_id: endpointId })
    .whereIn(
      'pool_id',
      gone.map(({ pool_id }) => pool_id),
    )
    .delete();
  for (const binding of added) {
    await insertBinding(tx, binding);
    await requireForDomain(tx, binding);
  }
  const changed = new Set([...gone, ...added].map(({ service_id }) => service_id));
  const services: BoundService[] = [];
  for (const id of [...changed].sort()) services.push(await incrementVersion(tx, id));
  return services;
}

/** Actor hosts hold the bindings of a service under its version: it grows with each change of them. */
export async function incrementVersion(store: Store, id: string): Promise<BoundService> {
  const [service] = await store
    .knex<Service>('services')
    .where({ id })
    .update({ version: store.knex.raw('version + 1') })
    .returning(['id', 'version']);
  if (!service) throw new Error(`the service ${id} was deleted while its bindings were changed`);
  store.announce('service', id);
  return service;
}

async function bindingError(
  store: Store,
  { endpoint_id, service_id, pool_id }: Omit<Binding, 'created_at'>,
  thrown: unknown,
): Promise<unknown> {
  const options = { cause: thrown };
  switch (violatedConstraint(thrown) ?? violatedForeignKey(thrown)) {
    case 'endpoint_services_endpoint_id_foreign':
      return new AppError('not_found', `The endpoint ${endpoint_id} does not exist`, {}, options);
    case 'endpoint_services_service_id_foreign':
      return new AppError('not_found', `The service ${service_id} does not exist`, {}, options);
    case 'endpoint_services_pool_unique': {
      const owner = await store
        .knex<Binding>('endpoint_services')
        .where({ endpoint_id, pool_id })
        .first('service_id');
      return new AppError(
        'pool_id_taken',
        `The endpoint already has ${owner ? `the service ${owner.service_id}` : 'a service'} bound as "${pool_id}"`,
        {},
        options,
      );
    }
    default:
      return thrown;
  }
}
