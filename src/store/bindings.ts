/** The table `endpoint_services`: which services the code of an endpoint may use, and under which names. */
import { AppError } from '../errors.js';
import { type Store, violatedConstraint } from './database.js';
import { violatedForeignKey } from './foreign-keys.js';
import { insertInto } from './insert.js';

/** A row. */
export interface Binding {
  readonly endpoint_id: string;
  readonly service_id: string;
  /** The name by which handler code refers to the service; one endpoint has it once. */
  readonly pool_id: string;
  readonly created_at: Date;
}

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

/** @throws AppError not_found (endpoint or service) or pool_id_taken */
export async function createBinding(store: Store, binding: Omit<Binding, 'created_at'>): Promise<Binding> {
  try {
    const created = await insertBinding(store, binding);
    announce(store, binding);
    return created;
  } catch (thrown) {
    throw await bindingError(store, binding, thrown);
  }
}

/** Removes a service from an endpoint, under all the names it has there. @returns those names; none when not bound */
export async function deleteBindings(store: Store, endpointId: string, serviceId: string): Promise<string[]> {
  const deleted = await store
    .knex<Binding>('endpoint_services')
    .where({ endpoint_id: endpointId, service_id: serviceId })
    .delete()
    .returning('pool_id');
  if (deleted.length > 0) announce(store, { endpoint_id: endpointId, service_id: serviceId });
  return deleted.map(({ pool_id }) => pool_id).sort();
}

function announce(store: Store, binding: Pick<Binding, 'endpoint_id' | 'service_id'>): void {
  store.announce('endpoint', binding.endpoint_id);
  store.announce('service', binding.service_id);
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
