/**
 * Keeps one service of an actor host in its desired state: starts it, replaces it when the config changes,
 * drains it when the service is no longer active, and saves observations.
 */

import pTimeout from 'p-timeout';
import { AppError, toError } from '../errors.js';
import type { Runner } from '../reconcile/reconciler.js';
import type { HostedService, ServiceObservation } from '../store/service-activity.js';
import { CoalescingTask } from '../util/coalescing-task.js';
import { LatestWriter } from '../util/latest-writer.js';
import type { Logger } from '../util/log.js';
import type { IsolatedService } from './service-process/isolated-service.js';

type Observation = Omit<ServiceObservation, 'node_id' | 'service_id'>;

/** The part of the actor host that a runner uses. */
export interface ServiceRunnerHost {
  readonly log: Logger;
  /** @throws Error when the config cannot be decrypted */
  openConfig(service: HostedService): string;
  start(service: HostedService, config: string, onState: () => void): IsolatedService;
  /** Tells a running service its bindings. */
  bind(running: IsolatedService): void;
  /** Rejects when it cannot be saved now. */
  saveObservation(observation: Observation): Promise<void>;
}

export class ServiceRunner implements Runner {
  readonly #host: ServiceRunnerHost;
  #desired: HostedService | undefined;
  /** The version that was applied last; 0 before the first. */
  #version = 0;
  #running: IsolatedService | undefined;
  /** What will take its place. */
  #starting: IsolatedService | undefined;
  /** Its config, as JSON, and when it was activated. */
  #config: string | undefined;
  #activatedAt: number | undefined;
  /** Why an active service is not running. */
  #failure: string | undefined;
  readonly #working = new CoalescingTask(() => this.#reconcile());
  readonly #observation: LatestWriter<Observation>;
  readonly #draining = new Set<Promise<void>>();
  #activating: Promise<void> | undefined;

  constructor(host: ServiceRunnerHost) {
    this.#host = host;
    this.#observation = new LatestWriter(
      (observation) => host.saveObservation(observation),
      (error) => host.log.warn({ err: error }, 'observation could not be saved; trying again soon'),
    );
  }

  /** Undefined while the service is not active. */
  get running(): IsolatedService | undefined {
    return this.#running;
  }

  setDesired(desired: HostedService): void {
    this.#desired = desired;
    // It handles its own failures.
    void this.#working.run();
  }

  /** Resolves when the service is running, connected or not, or when starting it has failed. */
  async started(): Promise<void> {
    await this.#activating;
  }

  saveAgain(): void {
    void this.#observation.writeAgain();
  }

  retryUnsaved(): void {
    void this.#observation.retry();
  }

  /** Drains the service. @param limitMs how long to wait for calls in progress */
  async stop(limitMs?: number): Promise<void> {
    this.#release(limitMs);
    // What is being started is not needed any more; otherwise its start would be waited for.
    void this.#starting?.drain(limitMs);
    await this.#working.idle();
    this.#release(limitMs);
    const drained = Promise.all(this.#draining).then(() => undefined);
    // Drains that began earlier have no time limit.
    await (limitMs === undefined
      ? drained
      : pTimeout(drained, { milliseconds: limitMs, fallback: () => undefined }));
    await this.#observation.idle();
  }

  async #reconcile(): Promise<void> {
    const desired = this.#desired;
    if (!desired || desired.version === this.#version) return;
    if (desired.activated_at) {
      this.#activating = this.#activate(desired);
      await this.#activating;
      // They may have changed while it was being started.
      if (this.#running) this.#host.bind(this.#running);
      await this.#running?.settled();
      this.#applied(desired.version);
    } else {
      this.#failure = undefined;
      this.#release();
      // Not awaited, so that a new activation does not wait for the drain.
      void Promise.all(this.#draining).then(() => this.#applied(desired.version));
    }
  }

  #applied(version: number): void {
    // A drain may end after a newer version was applied.
    if (version <= this.#version) return;
    this.#version = version;
    this.#observe();
  }

  async #activate(service: HostedService): Promise<void> {
    try {
      const config = this.#host.openConfig(service);
      this.#failure = undefined;
      const activatedAt = service.activated_at?.getTime();
      const isSame = config === this.#config && activatedAt === this.#activatedAt;
      this.#activatedAt = activatedAt;
      // A service that has failed is given another chance by an activation, not by a binding.
      if (this.#running && (isSame || (config === this.#config && this.#running.state.kind !== 'failed')))
        return;
      const running = this.#host.start(service, config, () => this.#observe());
      // Until then, calls go to the one before; those in progress finish there.
      this.#starting = running;
      await running.ready();
      this.#starting = undefined;
      this.#release();
      this.#config = config;
      this.#running = running;
    } catch (thrown) {
      this.#release();
      this.#failure = toError(thrown).message;
      // A value of a secret that does not fit the config is a mistake of its user.
      const level = thrown instanceof AppError ? 'warn' : 'error';
      this.#host.log[level]({ err: toError(thrown) }, 'service cannot be activated');
    }
  }

  #release(limitMs?: number): void {
    const running = this.#running;
    this.#running = undefined;
    if (!running) return;
    const drained = running.drain(limitMs).finally(() => this.#draining.delete(drained));
    this.#draining.add(drained);
  }

  #observe(): void {
    // A service that was never changed or activated needs no observation, and there may be thousands.
    if (this.#version === 1 && !this.#running) return;
    void this.#observation.write({ ...this.#observed(), version: this.#version });
  }

  #observed(): Omit<Observation, 'version'> {
    if (this.#failure !== undefined) return { state: 'unreachable', message: this.#failure };
    const state = this.#running?.state;
    switch (state?.kind) {
      case undefined:
        return { state: 'inactive', message: 'Not active' };
      case 'connecting':
        return { state: 'connecting', message: 'Connecting' };
      case 'connected':
        return { state: 'connected', message: `Connected to ${state.message} in ${state.latencyMs} ms` };
      case 'unreachable':
      case 'failed':
        return { state: state.kind, message: state.reason };
    }
  }
}
