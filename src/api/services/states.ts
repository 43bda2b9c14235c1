/** How services stand on the actor hosts. */

import type { Store } from '../../store/database.js';
import { liveNodes } from '../../store/nodes.js';
import { observationsOfServices, type ServiceState } from '../../store/service-activity.js';
import type { Service } from '../../store/services.js';

export interface StandingOfService {
  readonly state: ServiceState;
  readonly state_message: string | null;
}

/** States from the worst to the best: of several actor hosts, the one where a service stands worst speaks for it. */
const WORST_FIRST: readonly ServiceState[] = ['failed', 'unreachable', 'connecting', 'inactive', 'connected'];

/** The standing of services, in their order. */
export async function standingsOf(
  { store }: { readonly store: Store },
  services: readonly Service[],
): Promise<StandingOfService[]> {
  const active = services.filter(({ activated_at }) => activated_at !== null).map(({ id }) => id);
  if (active.length === 0) return services.map(() => INACTIVE);
  const [nodes, observations] = await Promise.all([
    liveNodes(store, 'actor-host'),
    observationsOfServices(store, active),
  ]);
  const live = new Set(nodes.map(({ id }) => id));
  return services.map(({ id, activated_at }) => {
    if (activated_at === null) return INACTIVE;
    const own = observations.filter(({ service_id, node_id }) => service_id === id && live.has(node_id));
    const [worst] = own.sort((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
    return worst ? { state: worst.state, state_message: worst.message } : live.size > 0 ? STARTING : NO_HOST;
  });
}

const INACTIVE: StandingOfService = { state: 'inactive', state_message: null };
const STARTING: StandingOfService = { state: 'connecting', state_message: 'It is being started' };
const NO_HOST: StandingOfService = {
  state: 'unreachable',
  state_message: 'No actor host is alive that could run the service; start the `actor-host` process.',
};
