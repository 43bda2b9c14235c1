/** Waiting until the actor hosts have acted on what is desired of a service. */
import { presentNodes } from '../reconcile/present-nodes.js';
import { liveNodes } from '../store/nodes.js';
import { observationsOfService, type ServiceObservation } from '../store/service-activity.js';
import { findService } from '../store/services.js';
import type { ApiDependencies } from './dependencies.js';

type HostDependencies = Pick<ApiDependencies, 'store' | 'changes'>;

/** The actor hosts that are alive now: those to wait for. One that comes later reads what is desired by then. */
export async function liveActorHosts({ store }: HostDependencies): Promise<string[]> {
  return (await presentNodes(store, 'actor-host')).map(({ id }) => id);
}

/**
 * Waits until all these hosts, as far as they live, have acted on a version of a service.
 * @returns what they observe, in their order; undefined when the time is over
 */
export function awaitHosts(
  { store, changes }: HostDependencies,
  hosts: readonly string[],
  service: { readonly id: string; readonly version: number },
  timeoutMs: number,
): Promise<readonly ServiceObservation[] | undefined> {
  return changes.waitFor('service_observation', service.id, timeoutMs, async () => {
    const [alive, observations] = await Promise.all([
      liveNodes(store, 'actor-host'),
      observationsOfService(store, service.id),
    ]);
    const seen = hosts
      .filter((id) => alive.some((node) => node.id === id))
      .map((id) => observations.find(({ node_id }) => node_id === id));
    const isDone = seen.every((observation) => observation && observation.version >= service.version);
    if (isDone) return seen as ServiceObservation[];
    // Deleted meanwhile, with all that was observed of it.
    return (await findService(store, service.id)) ? undefined : [];
  });
}
