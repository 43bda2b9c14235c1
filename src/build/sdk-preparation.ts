/** Builds the SDK without a time limit, retries until it succeeds, and reports progress. */
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { type Preparation, WORKER_LOG } from '../model/preparation.js';
import { isDiskFull, reportsDiskFull } from '../util/disk-full.js';
import type { Logger } from '../util/log.js';
import { renderDiagnostics } from './diagnostics.js';
import type { FailedSet } from './set-failure.js';
import type { SetProgress } from './set-progress.js';

/** Pause before the first retry; doubled after each failure. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export class SdkPreparation {
  readonly #what: string;
  readonly #log: Logger;
  readonly #started = performance.now();
  #progress: { readonly crates: number; readonly of: number | null } = { crates: 0, of: null };
  #problem: string | null = null;

  /** @param what the name of what is prepared, for people */
  constructor(what: string, log: Logger) {
    this.#what = what;
    this.#log = log;
  }

  get state(): Preparation {
    const seconds = Math.floor((performance.now() - this.#started) / 1000);
    return { what: this.#what, ...this.#progress, seconds, problem: this.#problem };
  }

  /**
   * Retries until it succeeds.
   * @param signal aborts it
   * @returns undefined when it was aborted
   */
  async run<Built extends { readonly ok: true }>(
    attempt: (onProgress: (progress: SetProgress) => void) => Promise<Built | FailedSet>,
    signal: AbortSignal | undefined,
  ): Promise<Built | undefined> {
    this.#log.info(`preparing the ${this.#what}`);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const result = await attempt((progress) => this.#advance(progress)).catch(toError);
      if ('ok' in result && result.ok) {
        this.#log.info({ seconds: this.state.seconds }, `${this.#what} ready`);
        return result;
      }
      if (signal?.aborted) return undefined;
      this.#problem = `${reasonOf(result)} It is tried again; ${WORKER_LOG} has the details.`;
      const details = 'ok' in result ? { output: renderDiagnostics(result.diagnostics) } : { err: result };
      this.#log.warn(
        { ...details, again_in_ms: pauseMs },
        `the ${this.#what} cannot be prepared. ${this.#problem}`,
      );
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted) return undefined;
    }
  }

  #advance(progress: SetProgress): void {
    this.#progress = progress;
    this.#problem = null;
  }
}

/** A sentence without tool output: it is visible to every client. */
function reasonOf(failure: FailedSet | Error): string {
  if ('ok' in failure && failure.outcome !== 'exited') return renderDiagnostics(failure.diagnostics);
  const isFull =
    'ok' in failure
      ? failure.diskMayBeFull && failure.diagnostics.some(({ rendered }) => reportsDiskFull(rendered))
      : isDiskFull(failure);
  if (isFull) return 'There is no room left on the disk of the worker (DATA_DIR).';
  if (!('ok' in failure)) return 'The worker failed to prepare it.';
  return failure.step === 'download'
    ? 'Its crates cannot be downloaded: is the registry of crates reachable?'
    : 'The compiler failed: does the Rust toolchain work?';
}
