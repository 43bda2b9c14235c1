/** Waits for conditions, never for a fixed time. */
import { setTimeout as delay } from 'node:timers/promises';

const LIMIT_MS = 60_000;

/**
 * Repeats an assertion until it holds.
 * @throws its last error, after the timeout
 */
export async function eventually<T>(assertion: () => Promise<T> | T, limitMs = LIMIT_MS): Promise<T> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(10);
    }
  }
}
