/** Graceful shutdown: named steps, run in reverse order, under one time limit. */
import { toError } from '../errors.js';
import type { Logger } from '../util/log.js';

/** Timeout of the whole shutdown, after which the process exits. */
export const FORCE_QUIT_MS = 45_000;

/** Collects steps, and runs them on the first SIGTERM or SIGINT. */
export class Shutdown {
  readonly #log: Logger;
  readonly #steps: { readonly name: string; readonly close: () => Promise<void> }[] = [];
  #ending: Promise<void> | undefined;

  constructor(log: Logger) {
    this.#log = log;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void this.run(signal));
    // With an IPC channel, as under `npm run up`: this process ends when its parent has ended.
    if (process.send) process.on('disconnect', () => void this.run('parent process ended'));
    // The parent may have ended while modules were loaded.
    if (process.send && !process.connected) setImmediate(() => void this.run('parent process ended'));
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'uncaught exception');
      process.exitCode = 1;
      void this.run('uncaught exception');
    });
  }

  /** Whether shutdown has begun. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** Adds a step; steps run in reverse order. A step added during the shutdown runs next. */
  add(name: string, close: () => Promise<void>): void {
    this.#steps.unshift({ name, close });
  }

  /** Runs all steps once and ends the process. */
  run(reason: string): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #end(reason: string): Promise<void> {
    this.#log.info({ reason }, 'stopping');
    const force = setTimeout(() => {
      this.#log.error({ after_ms: FORCE_QUIT_MS }, 'not stopped in time, quitting');
      process.exit(1);
    }, FORCE_QUIT_MS);
    for (let step = this.#steps.shift(); step; step = this.#steps.shift()) {
      try {
        await step.close();
      } catch (thrown) {
        this.#log.error({ err: toError(thrown), step: step.name }, 'could not stop cleanly');
        process.exitCode = 1;
      }
    }
    clearTimeout(force);
    this.#log.info('stopped');
    process.exit();
  }
}
