/** Who sends a request to the API. */
import type { Actor } from '../model/actor.js';
import type { ApiContext } from './context.js';

/** The one place that decides it: what is stored about a request comes from here. */
export function actorOf({ state: { principal, client } }: Pick<ApiContext, 'state'>): Actor {
  return principal?.actor ?? { kind: 'anonymous', address: client.address };
}
