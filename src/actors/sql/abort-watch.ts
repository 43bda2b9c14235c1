/**
 * Notices calls that nobody waits for any more. It looks at them now and then, because a call makes its abort signal
 * when first asked for it, and that costs more than a quick statement.
 */
import type { DriverCall } from '../driver.js';

/** How often it looks; an abort is noticed this much later at most. */
const WATCH_MS = 50;

interface Watched {
  readonly call: DriverCall;
  readonly abort: () => void;
}

export class AbortWatch {
  private readonly watched = new Set<Watched>();
  private timer: NodeJS.Timeout | undefined;

  /**
   * Watches a call.
   * @param abort called once, unless the watch was ended before
   * @returns ends the watch
   */
  watch(call: DriverCall, abort: () => void): () => void {
    const entry = { call, abort };
    this.watched.add(entry);
    this.timer ??= setInterval(() => this.look(), WATCH_MS);
    return () => this.watched.delete(entry);
  }

  private look(): void {
    if (this.watched.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    for (const entry of this.watched) {
      if (!entry.call.signal.aborted) continue;
      this.watched.delete(entry);
      entry.abort();
    }
  }
}
