/** Who sends a request to the API. */
import type { Actor } from '../model/actor.js';
import { ownerOfActor } from '../model/owner.js';
import type { ApiContext } from './context.js';

/** The one place that decides it: what is stored about a request comes from here. */
export function actorOf({ state: { principal, client } }: Pick<ApiContext, 'state'>): Actor {
  return principal?.actor ?? { kind: 'anonymous', address: client.address };
}

/** Who takes turns with others for what a request needs. */
export function ownerOf(context: Pick<ApiContext, 'state'>): string {
  return ownerOfActor(actorOf(context));
}
