/** Promises about time, kept apart from what else the machine is doing. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const ROUNDS = 10;
/** On a machine with nothing else to do, a Node process that does nothing starts and ends in less, milliseconds. */
const IDLE_START_MS = 60;
const YARDSTICKS = 3;

/**
 * Repeats something that takes time until it has stayed below a bar, and at least so many times. Whatever else runs on a
 * machine only adds to a time: the least is closest to what it takes by itself, and on a machine where any process takes
 * longer to start, so may this.
 * @param round returns how long it took, milliseconds
 * @throws Error with all times when none was below the bar
 */
export async function withinBar(
  barMs: number,
  round: (number: number) => Promise<number>,
  leastRounds = 1,
): Promise<void> {
  const times: string[] = [];
  for (let isWithin = false; times.length < leastRounds || !isWithin; ) {
    if (times.length === ROUNDS) throw new Error(`Never below ${barMs} ms: ${times.join(', ')}`);
    const before = await slowness();
    const ms = await round(times.length);
    const slower = Math.max(before, await slowness());
    times.push(`${Math.round(ms)} (${slower.toFixed(1)} times as slow as idle)`);
    isWithin ||= ms < barMs * slower;
  }
}

/** How many times as long as on an idle machine it takes now to start a process; at least 1. */
async function slowness(): Promise<number> {
  const started = performance.now();
  for (let at = 0; at < YARDSTICKS; at++) await promisify(execFile)(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - started) / YARDSTICKS / IDLE_START_MS);
}
