/** Orderly ends: named steps, run last to first, under one time limit. */
import { toError } from './errors.js';
import type { Logger } from './log.js';

/** The whole shutdown of a process may take this long; then it ends anyway. */
export const FORCE_QUIT_MS = 45_000;

/** Collects what has to be closed, and closes it at the first SIGTERM or SIGINT. */
export class Shutdown {
  readonly #steps: { readonly name: string; readonly close: () => Promise<void> }[] = [];
  #ending: Promise<void> | undefined;

  constructor(private readonly log: Logger) {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void this.run(signal));
    // Started by another process of ours over an IPC channel: without it there is nobody to work for.
    if (process.connected) process.on('disconnect', () => void this.run('parent process ended'));
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'uncaught exception');
      process.exitCode = 1;
      void this.run('uncaught exception');
    });
  }

  /** True from the moment the process was told to end. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** Adds a step; steps run in the reverse order of being added. One that comes while the process ends is next. */
  add(name: string, close: () => Promise<void>): void {
    this.#steps.unshift({ name, close });
  }

  /** Runs all steps, once, and ends the process. */
  run(reason: string): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #end(reason: string): Promise<void> {
    this.log.info({ reason }, 'stopping');
    const force = setTimeout(() => {
      this.log.error({ after_ms: FORCE_QUIT_MS }, 'not stopped in time, quitting');
      process.exit(1);
    }, FORCE_QUIT_MS);
    for (let step = this.#steps.shift(); step; step = this.#steps.shift()) {
      try {
        await step.close();
      } catch (thrown) {
        this.log.error({ err: toError(thrown), step: step.name }, 'could not stop cleanly');
        process.exitCode = 1;
      }
    }
    clearTimeout(force);
    this.log.info('stopped');
    process.exit();
  }
}
