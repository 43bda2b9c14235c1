/** Who sends a request to the API. */
import type { Actor } from '../model/actor.js';
import type { ApiContext } from './context.js';

/** The one place that decides it: what is stored about a request comes from here. */
export function actorOf({ state, req }: Pick<ApiContext, 'state' | 'req'>): Actor {
  return state.principal?.actor ?? { kind: 'anonymous', address: req.socket.remoteAddress ?? 'unknown' };
}
