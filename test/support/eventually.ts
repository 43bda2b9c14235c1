/** Waits for conditions, never for a fixed time. */
import { setTimeout as delay } from 'node:timers/promises';

const LIMIT_MS = 60_000;
/** Between two tries, at least and at most; in between a tenth of what has passed: tests share the processors. */
const [LEAST_MS, MOST_MS] = [10, 100];

/**
 * Repeats an assertion until it holds.
 * @throws its last error, after the timeout
 */
export async function eventually<T>(assertion: () => Promise<T> | T, limitMs = LIMIT_MS): Promise<T> {
  const began = Date.now();
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      const passed = Date.now() - began;
      if (passed > limitMs) throw error;
      await delay(Math.min(MOST_MS, Math.max(LEAST_MS, passed / 10)));
    }
  }
}
