/** Who sends a request to the API. */

import type { Client } from '../../http/trusted-proxies.js';
import type { Actor } from '../../model/actor.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Principal } from './principal.js';

/** The state of a request, as far as it says who sends it. */
interface Requester {
  readonly state: { readonly principal?: Principal; readonly client: Client };
}

/** The one place that decides it: what is stored about a request comes from here. */
export function actorOf({ state: { principal, client } }: Requester): Actor {
  return principal?.actor ?? { kind: 'anonymous', address: client.address };
}

/** Who takes turns with others for what a request needs. */
export function ownerOf(request: Requester): string {
  return ownerOfActor(actorOf(request));
}
