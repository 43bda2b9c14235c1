/** What the runner of an endpoint saves in the database: what it observes, and that a crash loop began or ended. */
import { LatestWriter } from '../../util/latest-writer.js';
import type { EndpointRunnerHost, RunnerObservation } from './runner-host.js';

export class RunnerReports {
  readonly #observation: LatestWriter<RunnerObservation>;
  readonly #crashes: LatestWriter<() => Promise<void>>;
  #observedRevision: number | undefined;

  constructor(host: Pick<EndpointRunnerHost, 'saveObservation' | 'log'>) {
    this.#observation = new LatestWriter(
      (observation) => host.saveObservation(observation),
      (error) => host.log.warn({ err: error }, 'observation could not be saved; trying again soon'),
    );
    this.#crashes = new LatestWriter(
      (save) => save(),
      (error) =>
        host.log.warn({ err: error }, 'crash loop or recovery could not be saved; trying again soon'),
    );
  }

  /** Whether what became of this revision of the endpoint was observed, and has not changed since. */
  isObserved(revision: number): boolean {
    return this.#observedRevision === revision;
  }

  /** Resolves when it is saved, or could not be. */
  async observe(observation: RunnerObservation): Promise<void> {
    await this.#observation.write(observation);
    this.#observedRevision = observation.revision;
  }

  /** What was observed of it says enough. */
  leaveObserved(revision: number): void {
    this.#observedRevision = revision;
  }

  /** What was observed is no longer so. */
  outdate(): void {
    this.#observedRevision = undefined;
  }

  /** Saves that a crash loop began or ended. */
  async writeCrashes(save: () => Promise<void>): Promise<void> {
    await this.#crashes.write(save);
  }

  /** Whether the last crash loop, or its end, is saved. */
  get areCrashesSaved(): boolean {
    return this.#crashes.isSettled;
  }

  /** Saves the latest observation again. */
  saveAgain(): void {
    void this.#observation.writeAgain();
  }

  /** Saves what could not be saved before. */
  retryUnsaved(): void {
    void this.#observation.retry();
    void this.#crashes.retry();
  }

  /** Resolves when nothing is being observed. */
  async observed(): Promise<void> {
    await this.#observation.idle();
  }

  /** Resolves when nothing is being saved. */
  async idle(): Promise<void> {
    await Promise.all([this.#observation.idle(), this.#crashes.idle()]);
  }
}
