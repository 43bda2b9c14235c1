/** Waits until gateways route as they should. */
import { unobservedEndpoint } from '../store/observations.js';
import type { LifecycleDependencies } from './lifecycle-dependencies.js';

/** A gateway that takes longer than this reconciles later. */
const NOTICE_MS = 5_000;

/** Waits until all live gateways have reconciled the running endpoints of a host. */
export async function awaitRouting(
  { store, changes }: Pick<LifecycleDependencies, 'store' | 'changes'>,
  host: string,
): Promise<void> {
  const deadline = performance.now() + NOTICE_MS;
  for (;;) {
    const pending = await unobservedEndpoint(store, host);
    const remaining = deadline - performance.now();
    if (pending === undefined || remaining <= 0) return;
    const isDone = async () => ((await unobservedEndpoint(store, host)) === pending ? undefined : true);
    await changes.waitFor('observation', pending, remaining, isDone);
  }
}
