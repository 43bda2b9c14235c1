/** Waits until gateways serve running endpoints as they should. */
import { type EndpointSelection, unobservedEndpoint } from '../store/observations.js';
import type { LifecycleDependencies } from './lifecycle-dependencies.js';

/** A gateway that takes longer than this reconciles later. */
const NOTICE_MS = 5_000;
const STILL_PENDING =
  'The change is stored, but not all gateways serve accordingly yet; they do so as soon as they can.';

/**
 * Waits until all live gateways have reconciled those of some endpoints that run.
 * @returns warnings for the response: when some have not in time
 */
export async function awaitRouting(
  { store, changes }: Pick<LifecycleDependencies, 'store' | 'changes'>,
  endpoints: EndpointSelection,
): Promise<string[]> {
  const deadline = performance.now() + NOTICE_MS;
  for (;;) {
    const pending = await unobservedEndpoint(store, endpoints);
    const remaining = deadline - performance.now();
    if (pending === undefined) return [];
    if (remaining <= 0) return [STILL_PENDING];
    const isDone = async () => ((await unobservedEndpoint(store, endpoints)) === pending ? undefined : true);
    await changes.waitFor('observation', pending, remaining, isDone);
  }
}
