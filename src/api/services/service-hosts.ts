/** Waits until the actor hosts have reconciled the desired state of a service. */
import { awaitLiveNodes } from '../../reconcile/nodes.js';
import type { BoundService } from '../../store/bindings.js';
import { liveNodes } from '../../store/nodes.js';
import { observationsOfService, type ServiceObservation } from '../../store/service-activity.js';
import { findService } from '../../store/services.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** An actor host that takes longer than this reconciles a changed binding later. */
const NOTICE_MS = 5_000;

type HostDependencies = Pick<ApiDependencies, 'store' | 'changes'>;

/** The ids of the live actor hosts. One that starts later reads the desired state anyway. */
export async function liveActorHosts({ store }: HostDependencies): Promise<string[]> {
  return (await awaitLiveNodes(store, 'actor-host')).map(({ id }) => id);
}

/**
 * Waits until those of the hosts that stay alive have observed a version of a service.
 * @returns their observations, in the order of `hosts`, or empty if the service was deleted; undefined after the
 *   timeout
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
    const current = hosts
      .filter((id) => alive.some((node) => node.id === id))
      .map((id) => observations.find(({ node_id }) => node_id === id));
    const isDone = current.every((observation) => observation && observation.version >= service.version);
    if (isDone) return current as ServiceObservation[];
    // Observations are deleted with their service.
    return (await findService(store, service.id)) ? undefined : [];
  });
}

/** Waits until changed bindings of services apply to running handlers. */
export async function awaitBindings(
  deps: HostDependencies,
  services: readonly BoundService[],
): Promise<void> {
  if (services.length === 0) return;
  const hosts = await liveActorHosts(deps);
  await Promise.all(services.map((service) => awaitHosts(deps, hosts, service, NOTICE_MS)));
}
