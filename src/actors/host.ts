/**
 * The actor host: makes the services that are active here the same as those the database says should be, and knows which
 * endpoint may use which. It reads services when they are announced, when it starts, and every few seconds in case an
 * announcement was lost.
 */
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import { type Changes, Periodically } from '../reconcile/changes.js';
import { Repeater } from '../repeater.js';
import type { SecretBox } from '../secrets.js';
import type { ServiceConfig, ServiceType } from '../service-configs.js';
import { readServiceToken } from '../service-token.js';
import type { Store } from '../store/database.js';
import {
  type HostedBinding,
  type HostedService,
  hostedBindings,
  hostedServices,
  saveServiceObservation,
  serviceVersions,
} from '../store/service-activity.js';
import { withinTime } from '../within-time.js';
import { Actor } from './actor.js';
import { BindingTable } from './binding-table.js';
import type { Driver, ObjectFiles } from './driver.js';
import type { SessionHost } from './handler-session.js';
import { lendFiles } from './object-access.js';
import { CONNECT_TIMEOUT_MS, type ConnectionTest, testConnection } from './open-connection.js';
import { ServiceError } from './service-error.js';
import type { ActorMetrics, PoolUse, ServiceMetrics } from './service-metrics.js';
import { ServiceRunner } from './service-runner.js';

/** Gives the driver of a type, which it may have to load first. */
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

const LOOK_EVERY_MS = 5_000;
const READ_BATCH = 1_000;

/** A service as this host has it. */
interface Hosted {
  readonly runner: ServiceRunner;
  readonly metrics: ActorMetrics;
  row: HostedService;
}

export class ActorHost implements SessionHost {
  readonly #hosted = new Map<string, Hosted>();
  readonly #bindings = new BindingTable();
  readonly #periodic: Periodically;
  readonly #toRead = new Set<string>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #reading = new Repeater(() => this.#read());
  #isStopping = false;

  constructor(private readonly options: ActorHostOptions) {
    const { changes } = options;
    this.#periodic = new Periodically(
      LOOK_EVERY_MS,
      () => this.lookAtAll(),
      (error) => this.#warn(error),
    );
    changes.onChange('service', (id) => this.#look(id));
    // A deleted endpoint takes its bindings with it.
    changes.onChange('endpoint', (id) => {
      for (const serviceId of this.#bindings.servicesOf(id)) this.#look(serviceId);
    });
    changes.onConnected(() => {
      this.lookAtAll().catch((thrown: unknown) => this.#warn(toError(thrown)));
    });
  }

  /** Compares all services with what is known, and reads those that differ. */
  async lookAtAll(): Promise<void> {
    const current = await serviceVersions(this.options.store);
    const seen = new Set<string>();
    for (const { id, version } of current) {
      seen.add(id);
      if (this.#hosted.get(id)?.row.version !== version) this.#toRead.add(id);
    }
    for (const id of this.#hosted.keys()) if (!seen.has(id)) this.#toRead.add(id);
    for (const { runner } of this.#hosted.values()) if (runner.isUnsaved) runner.observeAgain();
    await this.#reading.run();
  }

  /**
   * Reads all services, and resolves when those that should be active take calls. Whoever calls earlier would be told that
   * nothing is bound, or active.
   */
  async begin(): Promise<void> {
    await this.lookAtAll();
    await Promise.all([...this.#hosted.values()].map(({ runner }) => runner.hasActor()));
  }

  /** Reports all observations again: they were forgotten with the node. */
  observeAgain(): void {
    for (const { runner } of this.#hosted.values()) runner.observeAgain();
  }

  authenticate(token: string): string | undefined {
    return readServiceToken(this.options.secrets, token);
  }

  actorFor(endpointId: string, poolId: string): Actor {
    const serviceId = this.#bindings.find(endpointId, poolId);
    const hosted = serviceId === undefined ? undefined : this.#hosted.get(serviceId);
    if (!hosted) {
      throw new ServiceError('unbound', `no service is bound to this endpoint as "${poolId.slice(0, 64)}"`);
    }
    const { actor } = hosted.runner;
    if (!actor) throw new ServiceError('inactive', `the service "${hosted.row.name}" is not active`);
    return actor;
  }

  /**
   * Tries out the stored config of a service, active or not.
   * @returns undefined when there is no such service
   */
  async testService(id: string): Promise<ConnectionTest | undefined> {
    const { store, sqliteDir, log } = this.options;
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
   * The files of an active object storage: of this one, or of the one that has been active for longest.
   * @throws ServiceError inactive, or invalid when the service is none
   */
  objectFiles(serviceId: string | undefined): { readonly serviceId: string; readonly files: ObjectFiles } {
    const hosted = serviceId === undefined ? this.#earliestStorage() : this.#hosted.get(serviceId);
    if (hosted && hosted.row.service_type !== 'objstore') {
      throw new ServiceError('invalid', `the service "${hosted.row.name}" is no object storage`);
    }
    const actor = hosted?.runner.actor;
    if (!hosted || !actor) {
      const message = hosted
        ? `the service "${hosted.row.name}" is not active`
        : 'no object storage is active';
      throw new ServiceError('inactive', message);
    }
    const { bucket } = JSON.parse(this.#openConfig(hosted.row)) as ServiceConfig<'objstore'>;
    return { serviceId: hosted.row.id, files: lendFiles(actor, bucket) };
  }

  /** The use of all pools, with their labels, for the metrics. */
  *poolUse(): Iterable<readonly [Record<string, string>, PoolUse]> {
    for (const { row, runner } of this.#hosted.values()) {
      if (runner.actor) yield [{ service: row.id, service_type: row.service_type }, runner.actor.use];
    }
  }

  /** Drains all actors: waits for what is under way, but no longer than this. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true;
    await this.#periodic.stop();
    await this.#reading.idle();
    await Promise.all([...this.#hosted.values()].map(({ runner }) => runner.stop(limitMs)));
    await withinTime(
      Promise.all(this.#leaving).then(() => undefined),
      limitMs,
    );
  }

  #earliestStorage(): Hosted | undefined {
    const storages = [...this.#hosted.values()].filter(
      ({ row, runner }) => row.service_type === 'objstore' && runner.actor,
    );
    const since = ({ row }: Hosted) => row.activated_at?.getTime() ?? 0;
    return storages.sort((a, b) => since(a) - since(b) || (a.row.id < b.row.id ? -1 : 1))[0];
  }

  #look(id: string): void {
    this.#toRead.add(id);
    this.#reading.run().catch((thrown: unknown) => this.#warn(toError(thrown)));
  }

  /** Reads what is to be read, in batches. */
  async #read(): Promise<void> {
    const { store } = this.options;
    while (this.#toRead.size > 0 && !this.#isStopping) {
      const ids = [...this.#toRead].slice(0, READ_BATCH);
      for (const id of ids) this.#toRead.delete(id);
      try {
        // Rows first: bindings that are newer than their row do no harm, older ones would pass for current.
        const services = new Map((await hostedServices(store, ids)).map((row) => [row.id, row]));
        const bindings = new Map<string, HostedBinding[]>(ids.map((id) => [id, []]));
        for (const each of await hostedBindings(store, ids)) bindings.get(each.service_id)?.push(each);
        for (const id of ids) {
          this.#bindings.replace(id, bindings.get(id) ?? []);
          this.#apply(id, services.get(id));
        }
      } catch (thrown) {
        for (const id of ids) this.#toRead.add(id);
        throw thrown;
      }
    }
  }

  #apply(id: string, row: HostedService | undefined): void {
    const hosted = this.#hosted.get(id);
    if (!row) {
      if (hosted) this.#remove(id, hosted);
    } else if (hosted) {
      hosted.row = row;
      hosted.runner.desire(row);
    } else {
      const metrics = this.options.metrics.of(id, row.service_type);
      const added = { row, metrics, runner: this.#runnerOf(id, metrics) };
      this.#hosted.set(id, added);
      added.runner.desire(row);
    }
  }

  #remove(id: string, { runner, metrics }: Hosted): void {
    this.#hosted.delete(id);
    runner.desire(undefined);
    const left = runner.stop().finally(() => {
      metrics.remove();
      this.#leaving.delete(left);
    });
    this.#leaving.add(left);
  }

  #runnerOf(id: string, metrics: ActorMetrics): ServiceRunner {
    const { store, nodeId, queueLimit, sqliteDir } = this.options;
    const log = this.options.log.child({ service_id: id });
    return new ServiceRunner({
      log,
      openConfig: (service) => this.#openConfig(service),
      makeActor: async (service, json, onState) =>
        new Actor({ ...(await this.#open(service, json)), queueLimit, sqliteDir, metrics, log, onState }),
      save: (observation) =>
        saveServiceObservation(store, { node_id: nodeId, service_id: id, ...observation }),
    });
  }

  #openConfig(service: HostedService): string {
    return this.options.secrets.open(service.config_encrypted);
  }

  async #open(service: HostedService, json: string): Promise<{ driver: Driver; config: ServiceConfig }> {
    const driver = await this.options.loadDriver(service.service_type);
    // Only checked configs are ever sealed, and sealing detects every change.
    return { driver, config: JSON.parse(json) as ServiceConfig };
  }

  #warn(error: Error): void {
    this.options.log.warn({ err: error }, 'looking for changed services failed; trying again soon');
  }
}
