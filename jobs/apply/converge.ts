/** The last step of an apply: all live gateways and actor hosts take what was committed. */
import { performance } from 'node:perf_hooks';
import type { LifecycleDependencies } from '../../src/lifecycle/lifecycle-dependencies.js';
import type { AnnouncedChanges } from '../../src/store/applies.js';
import {
  type Convergence,
  convergenceOfEndpoints,
  convergenceOfServices,
  type Refusal,
} from '../../src/store/apply-convergence.js';

/** A gateway needs a moment more than the handler itself. */
const NOTICE_MS = 10_000;

/** How the waiting ended. */
export interface ConvergeResult {
  /** Nodes that cannot take something. */
  readonly refusals: readonly Refusal[];
  /** Not all have taken everything in time. */
  readonly isLate: boolean;
}

/**
 * Waits until all have taken everything, one of them cannot, or time is up.
 * @param onProgress gets the number of endpoints that are left
 */
export async function awaitConvergence(
  { store, changes, config }: LifecycleDependencies,
  written: AnnouncedChanges,
  signal: AbortSignal,
  onProgress: (left: number) => Promise<void> = async () => undefined,
): Promise<ConvergeResult> {
  const deadline = performance.now() + config.START_TIMEOUT_MS + config.REQUEST_TIMEOUT_MS + NOTICE_MS;
  const waits = [
    { topic: 'observation', read: () => convergenceOfEndpoints(store, written.endpoints) },
    { topic: 'service_observation', read: () => convergenceOfServices(store, written.services) },
  ] as const;
  for (const { topic, read } of waits) {
    for (;;) {
      const { pending, refusals, left } = await read();
      if (refusals.length > 0) return { refusals, isLate: false };
      if (pending === undefined) break;
      if (topic === 'observation') await onProgress(left);
      const remaining = deadline - performance.now();
      if (remaining <= 0) return { refusals: [], isLate: true };
      const hasChanged = async () => {
        const now = await read();
        return isNews(now, pending) ? now : undefined;
      };
      await changes.waitFor(topic, pending, remaining, hasChanged, signal);
    }
  }
  return { refusals: [], isLate: false };
}

function isNews({ pending: now, refusals }: Convergence, pending: string): boolean {
  return now !== pending || refusals.length > 0;
}
