/**
 * The activity of services: the desired state (`services.activated_at`), and what each actor host observes (the table
 * `service_observations`).
 */
import type { Knex } from 'knex';
import { type Store, transaction } from './database.js';
import type { Service } from './services.js';

/** The state of a service on one actor host. */
export const SERVICE_STATES = ['inactive', 'connecting', 'connected', 'unreachable', 'failed'] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];

/** A row. */
export interface ServiceObservation {
  readonly node_id: string;
  readonly service_id: string;
  readonly state: ServiceState;
  /** The service version that the node has reconciled. */
  readonly version: number;
  /** The product and version of the backend, or why it cannot be reached. */
  readonly message: string;
}

/** A service as an actor host reads it. */
export type HostedService = Pick<
  Service,
  | 'id'
  | 'name'
  | 'service_type'
  | 'config_encrypted'
  | 'domains'
  | 'file_hosts'
  | 'former_files'
  | 'activated_at'
  | 'version'
> & {
  /** The secrets that its config refers to by their names, encrypted. */
  readonly secrets_encrypted: Readonly<Record<string, string>>;
};

/** An endpoint that can use a service, and the name it uses. */
export interface HostedBinding {
  readonly endpoint_id: string;
  readonly service_id: string;
  readonly pool_id: string;
}

/**
 * Makes a service active, unless it is disabled. Nothing changes when it already is, unless it has failed.
 * @returns the current service; undefined when there is none
 */
export async function setActive(store: Store, id: string): Promise<Service | undefined> {
  return transaction(store, async (tx) => {
    const service = await tx.knex<Service>('services').where({ id }).forUpdate().first();
    if (!service?.enabled) return service;
    if (service.activated_at && !(await hasFailed(tx.knex, id))) return service;
    const changes = { activated_at: tx.knex.raw('clock_timestamp()'), version: tx.knex.raw('version + 1') };
    const [activated] = await tx.knex<Service>('services').where({ id }).update(changes).returning('*');
    tx.announce('service', id);
    return activated;
  });
}

/** Whether an actor host has given it up. */
async function hasFailed(knex: Knex, id: string): Promise<boolean> {
  const failed = await knex('service_observations').where({ service_id: id, state: 'failed' }).first('state');
  return failed !== undefined;
}

/**
 * Makes a service inactive.
 * @returns the service, and whether it was active before; undefined when there is no such service
 */
export async function setInactive(
  store: Store,
  id: string,
): Promise<{ readonly service: Service; readonly wasActive: boolean } | undefined> {
  return transaction(store, async (tx) => {
    const service = await tx.knex<Service>('services').where({ id }).forUpdate().first();
    if (!service) return undefined;
    if (!service.activated_at) return { service, wasActive: false };
    const changes = { activated_at: null, version: tx.knex.raw('version + 1') };
    const [inactive = service] = await tx
      .knex<Service>('services')
      .where({ id })
      .update(changes)
      .returning('*');
    tx.announce('service', id);
    return { service: inactive, wasActive: true };
  });
}

/** The versions of all services, for a resync. */
export async function serviceVersions(store: Store): Promise<{ id: string; version: number }[]> {
  return store.knex('services').select('id', 'version');
}

/** Some services as an actor host needs them; ids that do not exist are left out. */
export async function hostedServices(store: Store, ids: readonly string[]): Promise<HostedService[]> {
  // In one statement: the secrets are those of the version that is read.
  const { rows } = await store.knex.raw<{ rows: HostedService[] }>(
    `SELECT id, name, service_type, config_encrypted, domains, file_hosts, former_files, activated_at, version,
            (SELECT coalesce(json_object_agg(secret_name, value_encrypted), '{}')
               FROM service_secrets JOIN installation_secrets ON installation_secrets.name = secret_name
              WHERE service_id = services.id) AS secrets_encrypted
       FROM services WHERE id = ANY(?)`,
    [[...ids]] as never[],
  );
  return rows;
}

/** All bindings of some services. */
export async function hostedBindings(store: Store, serviceIds: readonly string[]): Promise<HostedBinding[]> {
  return store
    .knex('endpoint_services')
    .whereIn('service_id', serviceIds)
    .select<HostedBinding[]>('endpoint_id', 'service_id', 'pool_id');
}

/** Saves an observation, unless the service or the node has been deleted. */
export async function saveServiceObservation(store: Store, observation: ServiceObservation): Promise<void> {
  const { node_id, service_id, state, version, message } = observation;
  await store.knex.raw(
    `INSERT INTO service_observations (node_id, service_id, state, version, message)
     SELECT nodes.id, services.id, ?, ?, ? FROM nodes, services WHERE nodes.id = ? AND services.id = ?
     ON CONFLICT (node_id, service_id) DO UPDATE SET
       state = excluded.state, version = excluded.version, message = excluded.message,
       updated_at = clock_timestamp()`,
    [state, version, message, node_id, service_id],
  );
  // Nothing is announced, since nothing that runs depends on it.
  if (state === 'connected')
    await store.knex.raw(
      `UPDATE services SET file_hosts = (array_append(file_hosts, hostname))[greatest(1, cardinality(file_hosts) - 98):]
         FROM nodes
        WHERE services.id = ? AND services.version = ? AND service_type = 'sqlite' AND nodes.id = ?
          AND hostname <> ALL (file_hosts)`,
      [service_id, version, node_id],
    );
  store.announce('service_observation', service_id);
}

/** The observations of some services. */
export async function observationsOfServices(
  store: Store,
  serviceIds: readonly string[],
): Promise<ServiceObservation[]> {
  return store.knex<ServiceObservation>('service_observations').whereIn('service_id', serviceIds);
}

export async function observationsOfService(store: Store, serviceId: string): Promise<ServiceObservation[]> {
  return store.knex<ServiceObservation>('service_observations').where({ service_id: serviceId });
}
