/** Promises about time after a fault: the bar is the one that is stated, whatever else the machine does. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Rounds are odd in number, so that one of them is the median. */
const FEWEST_ROUNDS = 3;
const MOST_ROUNDS = 7;
const MAJORITY = (MOST_ROUNDS + 1) / 2;

/** A machine is quiet when this part of its processor time was idle for a while. */
const QUIET_SHARE = 0.75;
const LOOK_MS = 500;
/** A round begins after this at the latest, on however busy a machine. */
const WAIT_FOR_QUIET_MS = 10_000;

/**
 * Repeats something that takes time; the median of its times has to be below a bar. Three rounds do when all of them are;
 * otherwise there are more, until most of seven are below the bar or are not. Before a round this waits a while for
 * others on the machine to be quiet, because their work is not what the bar is about.
 * @param round returns how long it took, milliseconds; puts on its own load, and takes it off again
 * @throws Error with all times when the median is not below the bar
 */
export async function withinBar(barMs: number, round: (number: number) => Promise<number>): Promise<void> {
  const times: string[] = [];
  let within = 0;
  for (;;) {
    const idle = await quiet();
    const ms = await round(times.length);
    times.push(`${Math.round(ms)} (${Math.round(idle * 100)} % idle before)`);
    if (ms < barMs) within++;
    if (within === MAJORITY || (within === FEWEST_ROUNDS && times.length === FEWEST_ROUNDS)) return;
    if (times.length - within === MAJORITY)
      throw new Error(`The median is not below ${barMs} ms: ${times.join(', ')}`);
  }
}

/** Waits until the machine is quiet, but not for long. @returns the idle share of its processor time at last */
async function quiet(): Promise<number> {
  const deadline = performance.now() + WAIT_FOR_QUIET_MS;
  for (let before = processorTimes(); ; ) {
    await delay(LOOK_MS);
    const now = processorTimes();
    const share = (now.idle - before.idle) / Math.max(1, now.all - before.all);
    if (share >= QUIET_SHARE || performance.now() > deadline) return share;
    before = now;
  }
}

/** Of all cores together since the machine was started, in ticks. */
function processorTimes(): { idle: number; all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  // user nice system idle iowait irq softirq steal; what follows is counted in user already.
  const ticks = line.trim().split(/ +/).slice(1, 9).map(Number);
  const [, , , idle = 0, waiting = 0] = ticks;
  return { idle: idle + waiting, all: ticks.reduce((sum, value) => sum + value, 0) };
}
