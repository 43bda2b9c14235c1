/** Who takes turns with others where something is scarce (`src/util/turns.ts`). */
import { networkOf } from '../util/client-network.js';
import type { Turn } from '../util/turns.js';
import type { AuditActor } from './actor.js';

/**
 * Hosts that have no domain are one owner together, with what is served at all hosts. A name of a host costs nothing:
 * if each were an owner, somebody with many of them would get all turns. They are of the installation itself, because
 * only those who see everything can have endpoints there.
 */
export const WITHOUT_DOMAIN = '*';

/** Who takes turns for an endpoint: the host that it is served at, if that has a domain. */
export function ownerOfEndpoint(endpoint: {
  readonly domain: string;
  /** Null: its host has none. */
  readonly domain_id: string | null;
}): string {
  return endpoint.domain_id === null ? WITHOUT_DOMAIN : endpoint.domain;
}

/**
 * Who takes turns for a service: the host whose endpoints may use it. Of several, the first, so that combinations of
 * hosts give nobody more turns.
 */
export function ownerOfService({ domains }: { readonly domains: readonly string[] }): string {
  return domains.toSorted()[0] ?? WITHOUT_DOMAIN;
}

/**
 * Whose turn it is: that of who asked for something, and of theirs that of a domain, so that many domains give nobody
 * more. Where nobody asked, or it is not known who, it is that of the domain.
 * @param principal as `ownerOfActor` says
 */
export function turnOf(principal: string | null | undefined, domain: string): Turn {
  return { owner: principal ?? domain, part: domain };
}

/** An owner of endpoints, for people. */
export function titleOfOwner(owner: string): string {
  return owner === WITHOUT_DOMAIN ? 'hosts without a domain' : `the domain "${owner}"`;
}

/**
 * Who takes turns for a request of the API, as the applies of them do: a user and their tokens are the same one. Where
 * no key is needed, an address is.
 */
export function ownerOfActor(actor: AuditActor): string {
  if (actor.kind === 'token') return actor.user_id ?? actor.id;
  if (actor.kind === 'anonymous') return `${actor.kind} ${networkOf(actor.address)}`;
  return actor.kind === 'user' ? actor.id : actor.kind;
}
