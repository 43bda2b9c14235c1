/** The actor host: runs the actors of active services, and resolves the bindings of endpoints. */

import { toError } from '../errors.js';
import type { ConnectionTest } from '../model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../model/service-configs.js';
import type { Changes } from '../reconcile/changes.js';
import { Reconciler, type RowChange } from '../reconcile/reconciler.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { readServiceToken } from '../secrets/service-token.js';
import type { Store } from '../store/database.js';
import {
  type HostedBinding,
  type HostedService,
  hostedBindings,
  hostedServices,
  saveServiceObservation,
  serviceVersions,
} from '../store/service-activity.js';
import type { Logger } from '../util/log.js';
import { Actor } from './actor.js';
import { actorFiles } from './actor-files.js';
import { BindingTable } from './binding-table.js';
import type { Driver, ObjectFiles } from './driver.js';
import type { SessionHost } from './handler-session.js';
import { CONNECT_TIMEOUT_MS, testConnection } from './open-connection.js';
import { ServiceError } from './service-error.js';
import type { ActorMetrics, PoolUse, ServiceMetrics } from './service-metrics.js';
import { ServiceRunner } from './service-runner.js';

/** Returns the driver of a type; loads it first if necessary. */
export type LoadDriver = (type: ServiceType) => Promise<Driver>;

export interface ActorHostOptions {
  readonly store: Store;
  readonly changes: Changes;
  readonly secrets: SecretBox;
  readonly loadDriver: LoadDriver;
  readonly nodeId: string;
  readonly metrics: ServiceMetrics;
  readonly queueLimit: number;
  readonly sqliteDir: string | undefined;
  readonly log: Logger;
}

export class ActorHost implements SessionHost {
  readonly #options: ActorHostOptions;
  readonly #services: Reconciler<HostedService, ServiceRunner>;
  readonly #bindings = new BindingTable();
  readonly #metrics = new Map<string, ActorMetrics>();

  constructor(options: ActorHostOptions) {
    this.#options = options;
    const { store, changes, log } = options;
    this.#services = new Reconciler<HostedService, ServiceRunner>({
      changes,
      topic: 'service',
      readVersions: () => serviceVersions(store),
      readRows: (ids) => hostedServices(store, ids),
      apply: (changed) => this.#apply(changed),
      log,
    });
    // Deleting an endpoint deletes its bindings.
    changes.onChange('endpoint', (id) => {
      for (const serviceId of this.#bindings.servicesOf(id)) this.#services.refresh(serviceId);
    });
  }

  /**
   * Reads all services, and resolves when the active ones accept calls. Earlier calls fail as unbound or inactive.
   */
  async start(): Promise<void> {
    await this.#services.resync();
    await Promise.all([...this.#services.runners.values()].map((runner) => runner.hasActor()));
  }

  /** Writes all observations again. */
  saveAgain(): void {
    this.#services.saveAgain();
  }

  authenticate(token: string): string | undefined {
    return readServiceToken(this.#options.secrets, token);
  }

  actorFor(endpointId: string, poolId: string): Actor {
    const serviceId = this.#bindings.find(endpointId, poolId);
    const service = serviceId === undefined ? undefined : this.#services.rows.get(serviceId);
    if (!service) {
      throw new ServiceError('unbound', `no service is bound to this endpoint as "${poolId.slice(0, 64)}"`);
    }
    return this.#activeActor(service);
  }

  /**
   * Tests the connection of a service, active or not.
   * @returns undefined when there is no such service
   */
  async testService(id: string): Promise<ConnectionTest | undefined> {
    const { store, sqliteDir, log } = this.#options;
    const [service] = await hostedServices(store, [id]);
    if (!service) return undefined;
    try {
      const started = performance.now();
      const { driver, config } = await this.#open(service, this.#openConfig(service));
      const remainingMs = Math.round(CONNECT_TIMEOUT_MS - (performance.now() - started));
      const context = { log: log.child({ service_id: id }), sqliteDir };
      return await testConnection(driver, config, context, remainingMs);
    } catch (thrown) {
      return { connected: false, error: toError(thrown).message };
    }
  }

  /**
   * The files of an object storage: of the given one, or of the one that has been active longest.
   * @throws ServiceError inactive, or invalid when the service is no object storage
   */
  objectFiles(serviceId: string | undefined): { readonly serviceId: string; readonly files: ObjectFiles } {
    const service = serviceId === undefined ? this.#earliestStorage() : this.#services.rows.get(serviceId);
    if (!service) throw new ServiceError('inactive', 'no object storage is active');
    if (service.service_type !== 'objstore') {
      throw new ServiceError('invalid', `the service "${service.name}" is no object storage`);
    }
    const actor = this.#activeActor(service);
    const { bucket } = JSON.parse(this.#openConfig(service)) as ServiceConfig<'objstore'>;
    return { serviceId: service.id, files: actorFiles(actor, bucket) };
  }

  /** The usage of all pools with their labels, for the metrics. */
  *poolUse(): Iterable<readonly [Record<string, string>, PoolUse]> {
    for (const { id, service_type } of this.#services.rows.values()) {
      const actor = this.#services.runners.get(id)?.actor;
      if (actor) yield [{ service: id, service_type }, actor.use];
    }
  }

  /** Drains all actors: waits up to `limitMs` for calls in progress. */
  async stop(limitMs: number): Promise<void> {
    await this.#services.stop(limitMs);
  }

  /** @throws ServiceError inactive */
  #activeActor({ id, name }: HostedService): Actor {
    const actor = this.#services.runners.get(id)?.actor;
    if (!actor) throw new ServiceError('inactive', `the service "${name}" is not active`);
    return actor;
  }

  #earliestStorage(): HostedService | undefined {
    const storages = [...this.#services.rows.values()].filter(
      ({ id, service_type }) => service_type === 'objstore' && this.#services.runners.get(id)?.actor,
    );
    const since = ({ activated_at }: HostedService) => activated_at?.getTime() ?? 0;
    return storages.sort((a, b) => since(a) - since(b) || (a.id < b.id ? -1 : 1))[0];
  }

  async #apply(changes: readonly RowChange<HostedService>[]): Promise<void> {
    // Read after the rows: bindings newer than their rows are harmless, older ones would be stale.
    const bindings = new Map<string, HostedBinding[]>(changes.map(({ id }) => [id, []]));
    const read = await hostedBindings(this.#options.store, [...bindings.keys()]);
    for (const binding of read) bindings.get(binding.service_id)?.push(binding);
    for (const { id, after } of changes) {
      this.#bindings.replace(id, bindings.get(id) ?? []);
      if (after) this.#run(after);
      else void this.#remove(id);
    }
  }

  async #remove(id: string): Promise<void> {
    await this.#services.remove(id);
    this.#metrics.get(id)?.remove();
    this.#metrics.delete(id);
  }

  #run(service: HostedService): void {
    const { runners } = this.#services;
    const runner = runners.get(service.id) ?? this.#makeRunner(service);
    runners.set(service.id, runner);
    runner.setDesired(service);
  }

  #makeRunner({ id, service_type }: HostedService): ServiceRunner {
    const { store, nodeId, queueLimit, sqliteDir } = this.#options;
    const log = this.#options.log.child({ service_id: id });
    const metrics = this.#options.metrics.of(id, service_type);
    this.#metrics.set(id, metrics);
    return new ServiceRunner({
      log,
      openConfig: (service) => this.#openConfig(service),
      makeActor: async (service, json, onState) =>
        new Actor({ ...(await this.#open(service, json)), queueLimit, sqliteDir, metrics, log, onState }),
      saveObservation: (observation) =>
        saveServiceObservation(store, { node_id: nodeId, service_id: id, ...observation }),
    });
  }

  #openConfig(service: HostedService): string {
    return this.#options.secrets.open(service.config_encrypted);
  }

  async #open(service: HostedService, json: string): Promise<{ driver: Driver; config: ServiceConfig }> {
    const driver = await this.#options.loadDriver(service.service_type);
    // Only validated configs are encrypted, and the encryption is authenticated.
    return { driver, config: JSON.parse(json) as ServiceConfig };
  }
}
