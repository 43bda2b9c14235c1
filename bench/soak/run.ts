/** One soak: warm-up, measurement without traffic, traffic with samples, and measurement without traffic again. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Figures, heldMemory, processFigures, takeFigures } from './figures.js';
import { type Landscape, openLandscape } from './landscape.js';
import { Outcomes } from './outcomes.js';
import { startTraffic, type TrafficOptions } from './traffic.js';
import { hasFallen, leaks, type MemoryRule, type MemoryTrend, memoryTrends, type Sample } from './verdict.js';

export interface SoakOptions extends TrafficOptions {
  readonly endpoints: number;
  /** Traffic before the first measurement: pools fill, code is compiled, caches grow. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly memory: MemoryRule;
  /** After warm-up, figures must not fall for this long before they are measured. */
  readonly calmMs: number;
  /** Called with the progress. */
  readonly onProgress?: (text: string) => void;
}

export interface SoakReport {
  readonly outcomes: Outcomes;
  readonly trends: readonly MemoryTrend[];
  readonly before: Figures;
  readonly after: Figures;
  /** Figures that grew and should not have, in words. */
  readonly leaks: readonly string[];
  readonly durationMs: number;
}

const SAMPLES = 40;
/** Idle resources are released within this: connections of pools, import readers. */
const SETTLE_LIMIT_MS = 180_000;
const LOOK_EVERY_MS = 1_000;

/** Runs a soak. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { onProgress = () => undefined, warmUpMs, durationMs } = options;
  onProgress(`starting ${options.endpoints} endpoints`);
  const landscape = await openLandscape(options.endpoints);
  try {
    const outcomes = new Outcomes();
    onProgress(`warming up for ${warmUpMs / 1000} s`);
    // At full speed, so that the young generation of V8 reaches its final size.
    await traffic(landscape, outcomes, { ...options, pauseMs: 0 }, warmUpMs);
    const before = await settled(landscape, stayed(options.calmMs));
    const heldBefore = await heldMemory(landscape);
    onProgress(`traffic for ${durationMs / 1000} s`);
    const samples = await traffic(landscape, outcomes, options, durationMs);
    onProgress('looking for what was left behind');
    const after = await settled(landscape, (figures) => leaks(before, figures).length === 0);
    const trends = memoryTrends(samples, heldBefore, await heldMemory(landscape), options.memory);
    return { outcomes, trends, before, after, leaks: leaks(before, after), durationMs };
  } finally {
    await landscape.close();
  }
}

/**
 * Whether no figure has fallen for a while. Idle resources that will be released must not count in the baseline: a leak
 * of the same size would be hidden.
 */
function stayed(ms: number): (figures: Figures) => boolean {
  let last: Figures | undefined;
  let since = performance.now();
  return (figures) => {
    if (!last || hasFallen(last, figures)) since = performance.now();
    last = figures;
    return performance.now() - since >= ms;
  };
}

async function traffic(
  landscape: Landscape,
  outcomes: Outcomes,
  options: SoakOptions,
  ms: number,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  const started = performance.now();
  const running = startTraffic(landscape, outcomes, options);
  try {
    for (let sample = 1; sample <= SAMPLES; sample++) {
      await delay(Math.max(0, started + (ms * sample) / SAMPLES - performance.now()));
      samples.push({ atMs: performance.now() - started, byKind: processFigures(landscape) });
    }
  } finally {
    await running.stop();
  }
  return samples;
}

/** Polls until there are no jobs and the figures are as wanted, or until a timeout. */
async function settled(landscape: Landscape, isWanted: (figures: Figures) => boolean): Promise<Figures> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const figures = await takeFigures(landscape);
    if ((figures.jobs === 0 && isWanted(figures)) || performance.now() > deadline) return figures;
    await delay(LOOK_EVERY_MS);
  }
}
