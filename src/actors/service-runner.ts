/**
 * Keeps one service of an actor host as it is desired: starts its actor, replaces it when the config changes, drains it
 * when the service is no longer active, and reports what it observes.
 */
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import { Repeater } from '../repeater.js';
import type { HostedService, ServiceState } from '../store/service-activity.js';
import { withinTime } from '../within-time.js';
import type { Actor } from './actor.js';
import type { LinkState } from './link.js';

/** What a runner observes. */
export interface RunnerObservation {
  readonly state: ServiceState;
  /** The version of the service that was acted on. */
  readonly version: number;
  readonly message: string;
}

/** What a runner needs of the actor host. */
export interface RunnerHost {
  readonly log: Logger;
  /** @throws Error when the config cannot be decrypted */
  openConfig(service: HostedService): string;
  /** Rejects when the driver cannot be loaded. */
  makeActor(service: HostedService, config: string, onState: (state: LinkState) => void): Promise<Actor>;
  /** Stores an observation; rejects when that is not possible now. */
  save(observation: RunnerObservation): Promise<void>;
}

export class ServiceRunner {
  #wanted: HostedService | undefined;
  /** The version that was acted on; 0 before the first. */
  #version = 0;
  #actor: Actor | undefined;
  /** The config of the actor, as JSON. */
  #config: string | undefined;
  /** Why there is no actor although there should be one. */
  #failure: string | undefined;
  readonly #working = new Repeater(() => this.#work());
  readonly #saving = new Repeater(() => this.#save());
  #isUnsaved = false;
  readonly #draining = new Set<Promise<void>>();
  #activating: Promise<void> | undefined;

  constructor(private readonly host: RunnerHost) {}

  /** The actor to call; undefined while the service is not active. */
  get actor(): Actor | undefined {
    return this.#actor;
  }

  /** Makes the service as it is desired; undefined when it is gone. */
  desire(wanted: HostedService | undefined): void {
    this.#wanted = wanted;
    // It reports what goes wrong itself.
    void this.#working.run();
  }

  /** Resolves when what was desired last has an actor, which need not be connected yet, or cannot have one. */
  async hasActor(): Promise<void> {
    await this.#activating;
  }

  /** Reports again what it observes: the last report got lost, or was forgotten. */
  observeAgain(): void {
    if (this.#version > 0) this.#observe();
  }

  get isUnsaved(): boolean {
    return this.#isUnsaved;
  }

  /** Drains the actor, and waits for everything that is under way, or for so long. */
  async stop(limitMs?: number): Promise<void> {
    await this.#working.idle();
    this.#release(limitMs);
    const drained = Promise.all(this.#draining).then(() => undefined);
    // One that began before knew no limit.
    await (limitMs === undefined ? drained : withinTime(drained, limitMs));
    await this.#saving.idle();
  }

  async #work(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted?.version === this.#version) return;
    if (wanted?.activated_at) {
      this.#activating = this.#activate(wanted);
      await this.#activating;
      await this.#actor?.settled();
      this.#actedOn(wanted.version);
    } else {
      this.#failure = undefined;
      this.#release();
      // Not waited for here: whoever activates it meanwhile is served at once.
      if (wanted) void Promise.all(this.#draining).then(() => this.#actedOn(wanted.version));
    }
  }

  #actedOn(version: number): void {
    // A drain may take longer than what came after it.
    if (version <= this.#version) return;
    this.#version = version;
    this.#observe();
  }

  async #activate(wanted: HostedService): Promise<void> {
    try {
      const config = this.host.openConfig(wanted);
      this.#failure = undefined;
      if (this.#actor && config === this.#config) return;
      const actor = await this.host.makeActor(wanted, config, () => this.#observe());
      // Calls under way finish on the old connections.
      this.#release();
      this.#config = config;
      this.#actor = actor;
    } catch (thrown) {
      this.#release();
      this.#failure = toError(thrown).message;
      this.host.log.error({ err: toError(thrown) }, 'service cannot be activated');
    }
  }

  #release(limitMs?: number): void {
    const actor = this.#actor;
    this.#actor = undefined;
    if (!actor) return;
    const drained = actor.drain(limitMs).finally(() => this.#draining.delete(drained));
    this.#draining.add(drained);
  }

  /** Stores what is observed; what changes meanwhile is stored next, what could not be stored, later. */
  #observe(): void {
    // Nobody waits for a service that was never changed nor activated, and there may be thousands.
    if (this.#version === 1 && !this.#actor) return;
    this.#isUnsaved = true;
    void this.#saving.run();
  }

  async #save(): Promise<void> {
    this.#isUnsaved = false;
    try {
      await this.host.save({ ...this.#seen(), version: this.#version });
    } catch (thrown) {
      this.#isUnsaved = true;
      this.host.log.warn({ err: toError(thrown) }, 'observation could not be saved; trying again soon');
    }
  }

  #seen(): Omit<RunnerObservation, 'version'> {
    if (this.#failure !== undefined) return { state: 'unreachable', message: this.#failure };
    const state = this.#actor?.state;
    switch (state?.kind) {
      case undefined:
        return { state: 'inactive', message: 'Not active' };
      case 'connecting':
        return { state: 'connecting', message: 'Connecting' };
      case 'connected':
        return { state: 'connected', message: `Connected to ${state.message} in ${state.latencyMs} ms` };
      case 'unreachable':
        return { state: 'unreachable', message: state.reason };
    }
  }
}
