/** The actor host: runs the actors of active services, and resolves the bindings of endpoints. */

import { toError } from '../errors.js';
import type { ConnectionTest } from '../model/connection-test.js';
import { ownerOfService } from '../model/owner.js';
import { secretsIn, withSecrets } from '../model/secret-references.js';
import { parseServiceConfig, type ServiceConfig, type StoredConfig } from '../model/service-configs.js';
import type { Changes } from '../reconcile/changes.js';
import type { NodeRegistration } from '../reconcile/nodes.js';
import { Reconciler, type RowChange } from '../reconcile/reconciler.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { type HandlerInstance, readServiceToken, validNonces } from '../secrets/service-token.js';
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
import { BindingTable } from './binding-table.js';
import { CONNECT_TIMEOUT_MS } from './open-connection.js';
import { ServiceError } from './service-error.js';
import type { ActorMetrics, PoolUse, ServiceMetrics } from './service-metrics.js';
import { IsolatedService } from './service-process/isolated-service.js';
import { testInProcess } from './service-process/isolated-test.js';
import type { IsolationSettings } from './service-process/service-run.js';
import { ServiceRunner } from './service-runner.js';
import type { SessionHost } from './session-host.js';
import { hadFile } from './sqlite-refusal.js';
import type { RemoteFiles } from './web-server.js';

/** How long a transfer waits for the process of its service, milliseconds. */
const OBJECTS_TIMEOUT_MS = 10_000;

export interface ActorHostOptions {
  readonly store: Store;
  readonly changes: Changes;
  readonly secrets: SecretBox;
  readonly node: Pick<NodeRegistration, 'id' | 'renew'>;
  readonly metrics: ServiceMetrics;
  readonly isolation: IsolationSettings;
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
      renew: () => options.node.renew(),
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
    await Promise.all([...this.#services.runners.values()].map((runner) => runner.started()));
  }

  /** Writes all observations again. */
  saveAgain(): void {
    this.#services.saveAgain();
  }

  authenticate(token: string): HandlerInstance | undefined {
    const { secrets, isolation } = this.#options;
    return readServiceToken(secrets, isolation.tokenFolder, token);
  }

  validNonces(): Promise<ReadonlySet<string>> {
    return validNonces(this.#options.isolation.tokenFolder);
  }

  actorFor(endpointId: string, poolId: string): IsolatedService {
    const serviceId = this.#bindings.find(endpointId, poolId);
    const service = serviceId === undefined ? undefined : this.#services.rows.get(serviceId);
    if (!service) {
      throw new ServiceError('unbound', `no service is bound to this endpoint as "${poolId.slice(0, 64)}"`);
    }
    return this.#activeActor(service);
  }

  /**
   * Tests the connection of a service, active or not.
   * @param owner whose turn it takes
   * @returns undefined when there is no such service
   */
  async testService(id: string, owner: string): Promise<ConnectionTest | undefined> {
    const { store, isolation, log } = this.#options;
    const [service] = await hostedServices(store, [id]);
    if (!service) return undefined;
    try {
      const config = this.#config(this.#openConfig(service));
      const { answerBytes, logsDebug, memoryMb, sqliteFolders } = isolation;
      const limits = { answerBytes, logsDebug, memoryMb, sqliteFolders, timeoutMs: CONNECT_TIMEOUT_MS };
      const request = {
        service: { id, type: service.service_type },
        ...{ config, ...limits },
      };
      const hadFile = () => this.#hadFile(service, config);
      return await testInProcess(owner, request, hadFile, isolation.starter, log.child({ service_id: id }));
    } catch (thrown) {
      return { connected: false, error: toError(thrown).message };
    }
  }

  /**
   * The files of an object storage: of the given one, or of the one that has been active longest.
   * @throws ServiceError inactive, or invalid when the service is no object storage
   */
  objectFiles(serviceId: string | undefined): RemoteFiles {
    const service = serviceId === undefined ? this.#earliestStorage() : this.#services.rows.get(serviceId);
    if (!service) throw new ServiceError('inactive', 'no object storage is active');
    if (service.service_type !== 'objstore')
      throw new ServiceError('invalid', `the service "${service.name}" is no object storage`);
    const actor = this.#activeActor(service);
    return { address: () => actor.objects(OBJECTS_TIMEOUT_MS) };
  }

  /** The usage of all pools with their labels, for the metrics. */
  *poolUse(): Iterable<readonly [Record<string, string>, PoolUse]> {
    for (const { id, service_type } of this.#services.rows.values()) {
      const actor = this.#services.runners.get(id)?.running;
      if (actor) yield [{ service: id, service_type }, actor.use];
    }
  }

  /** Adds the figures of the services to the metrics. */
  async measure(): Promise<void> {
    const running = [...this.#services.runners.values()].map((runner) => runner.running);
    await Promise.all(running.map((actor) => actor?.measure()));
  }

  /** Drains all actors: waits up to `limitMs` for calls in progress. */
  async stop(limitMs: number): Promise<void> {
    await this.#services.stop(limitMs);
  }

  /** @throws ServiceError inactive */
  #activeActor({ id, name }: HostedService): IsolatedService {
    const actor = this.#services.runners.get(id)?.running;
    if (!actor) throw new ServiceError('inactive', `the service "${name}" is not active`);
    return actor;
  }

  #earliestStorage(): HostedService | undefined {
    const storages = [...this.#services.rows.values()].filter(
      ({ id, service_type }) => service_type === 'objstore' && this.#services.runners.get(id)?.running,
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
      const running = this.#services.runners.get(id)?.running;
      if (running) this.#bind(id, running);
      if (after) this.#run(after);
      else void this.#remove(id);
    }
  }

  async #remove(id: string): Promise<void> {
    await this.#services.remove(id);
    // It has come back with this id.
    if (this.#services.runners.has(id)) return;
    this.#metrics.get(id)?.remove();
    this.#metrics.delete(id);
  }

  #run(service: HostedService): void {
    const { runners } = this.#services;
    const runner = runners.get(service.id) ?? this.#makeRunner(service);
    runners.set(service.id, runner);
    runner.setDesired(service);
  }

  #makeRunner({ id }: HostedService): ServiceRunner {
    const { store, node } = this.#options;
    const log = this.#options.log.child({ service_id: id });
    return new ServiceRunner({
      log,
      openConfig: (service) => this.#openConfig(service),
      start: (service, json, onState) => this.#start(service, this.#config(json), log, onState),
      bind: (running) => this.#bind(id, running),
      saveObservation: (observation) =>
        saveServiceObservation(store, { node_id: node.id, service_id: id, ...observation }),
    });
  }

  #start(service: HostedService, config: ServiceConfig, log: Logger, onState: () => void): IsolatedService {
    const { id, service_type: type } = service;
    return new IsolatedService({
      service: { id, type },
      owner: ownerOfService(service),
      config,
      hadFile: () => this.#hadFile(service, config),
      settings: this.#options.isolation,
      bindings: this.#bindings.of(id),
      log,
      onState,
      metrics: this.#metricsOf(service),
    });
  }

  #hadFile(service: HostedService, config: ServiceConfig): Promise<boolean> {
    const { store, isolation } = this.#options;
    return hadFile(store, service, config as ServiceConfig<'sqlite'>, isolation.sqliteFolders);
  }

  #bind(id: string, running: IsolatedService): void {
    running.setBindings(this.#bindings.of(id));
  }

  #metricsOf({ id, service_type }: HostedService): ActorMetrics {
    const metrics = this.#metrics.get(id) ?? this.#options.metrics.of(id, service_type);
    this.#metrics.set(id, metrics);
    return metrics;
  }

  /**
   * The config of a service with the values of its secrets.
   * @throws Error when something cannot be decrypted, or a value does not fit
   */
  #openConfig({ config_encrypted, secrets_encrypted, service_type }: HostedService): string {
    const { secrets } = this.#options;
    const json = secrets.open(config_encrypted);
    const stored = JSON.parse(json) as StoredConfig;
    if (secretsIn(stored).length === 0) return json;
    const complete = withSecrets(stored, (name) => secrets.open(secrets_encrypted[name] ?? ''));
    // What depends on a value could not be checked before.
    return JSON.stringify(parseServiceConfig(service_type, complete));
  }

  #config(json: string): ServiceConfig {
    // Only validated configs are encrypted, and the encryption is authenticated.
    return JSON.parse(json) as ServiceConfig;
  }
}
