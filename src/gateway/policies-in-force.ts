/** The policies of all endpoints of a gateway, as its front enforces them. */
import { tooLargeForDomain } from '../model/policies/room.js';
import type { Store } from '../store/database.js';
import { wantKeySet } from '../store/key-sets.js';
import type { Logger } from '../util/log.js';
import type { KnownEndpoint } from './compact-endpoint.js';
import { type CompiledPolicies, withDigest } from './compiled-policies.js';
import type { Environments } from './environments.js';
import { hasPolicies, PolicyCompiler } from './policy-compiler.js';
import { PolicyRoom } from './policy-room.js';

/** So many endpoints that a domain has had no room for are read again at a time, when it may have some. */
const READ_AGAIN = 100;

export interface PoliciesInForceOptions {
  readonly store: Store;
  readonly environments: Environments;
  readonly log: Logger;
  /** Bytes of the policies of one domain. */
  readonly policyBytes: number;
  /** Has an endpoint given to `update` soon. */
  readonly readAgain: (endpointId: string) => void;
}

/** What an endpoint has. */
interface InForce {
  readonly domain: string;
  readonly policies: CompiledPolicies;
}

export class PoliciesInForce {
  readonly #options: PoliciesInForceOptions;
  readonly #room: PolicyRoom;
  /** Of those that have some, by endpoint. */
  readonly #inForce = new Map<string, InForce>();
  /** Endpoints with other policies than the front has. */
  readonly #unsent = new Set<string>();
  /** Endpoints whose policies their domain had no room for, by the domain. They let nobody in. */
  readonly #refused = new Map<string, Set<string>>();

  constructor(options: PoliciesInForceOptions) {
    this.#options = options;
    this.#room = new PolicyRoom(options.policyBytes);
  }

  of(endpointId: string): CompiledPolicies | undefined {
    return this.#inForce.get(endpointId)?.policies;
  }

  /** @returns those of the endpoints whose policies the front does not have: it has to get them, see `sent` */
  async update(endpoints: readonly KnownEndpoint[]): Promise<Set<string>> {
    const compiler = new PolicyCompiler(this.#options.store, this.#options.environments);
    // All before any counts: one that cannot be read fails the whole change, which is tried again.
    const compiled: {
      endpoint: KnownEndpoint;
      before: InForce | undefined;
      wanted: CompiledPolicies | undefined;
    }[] = [];
    for (const endpoint of endpoints) {
      const before = this.#inForce.get(endpoint.id);
      if (hasPolicies(endpoint) || before)
        compiled.push({ endpoint, before, wanted: await compiler.compile(endpoint) });
    }
    // What they had makes room for what they get; who had room comes first.
    const changed = new Set<string>();
    const wasRefused = ({ domain, id }: KnownEndpoint) => this.#refused.get(domain)?.has(id) === true;
    compiled.sort((left, right) => Number(wasRefused(left.endpoint)) - Number(wasRefused(right.endpoint)));
    for (const { endpoint, before } of compiled)
      if (before) {
        this.#room.leave(before.domain, before.policies);
        if (!wasRefused(endpoint)) changed.add(before.domain);
      }
    for (const { endpoint, before, wanted } of compiled) {
      const { id, domain } = endpoint;
      if (before && (before.domain !== domain || !wanted)) this.#noMoreRefused(before.domain, id);
      const after = wanted && this.#admit(endpoint, wanted, changed);
      if (after) this.#inForce.set(id, { domain, policies: after });
      else this.#inForce.delete(id);
      if (isSame(before?.policies, after)) continue;
      this.#unsent.add(id);
      if (after?.broken !== undefined)
        this.#options.log.warn({ endpoint_id: id, error: after.broken }, 'a policy lets nobody in');
    }
    for (const domain of changed) this.#readRefusedAgain(domain);
    return new Set(endpoints.flatMap(({ id }) => (this.#unsent.has(id) ? id : [])));
  }

  /** The front has the policies of these. Until then each update names them again: it may have failed to take them. */
  sent(endpointIds: Iterable<string>): void {
    for (const id of endpointIds) this.#unsent.delete(id);
  }

  /** A token has a key that is not known: its issuer may have a new one. */
  unknownKey(endpointId: string): void {
    const { store, log } = this.#options;
    const url = this.of(endpointId)?.jwks_url;
    if (url === undefined) return;
    wantKeySet(store, url).catch((error: unknown) =>
      log.warn({ err: error, url }, 'keys of an issuer could not be asked for'),
    );
  }

  forget(endpointId: string): void {
    const before = this.#inForce.get(endpointId);
    this.#inForce.delete(endpointId);
    this.#unsent.delete(endpointId);
    if (!before) return;
    this.#room.leave(before.domain, before.policies);
    this.#noMoreRefused(before.domain, endpointId);
    this.#readRefusedAgain(before.domain);
  }

  /** @param changed gets the domain where one that was refused has room now: others may have it, too */
  #admit({ id, domain }: KnownEndpoint, wanted: CompiledPolicies, changed: Set<string>): CompiledPolicies {
    const taken = this.#room.take(domain, wanted);
    const wasRefused = this.#noMoreRefused(domain, id);
    if (taken) {
      if (wasRefused) changed.add(domain);
      return taken;
    }
    this.#refused.set(domain, (this.#refused.get(domain) ?? new Set()).add(id));
    const { timeout } = wanted;
    const broken = tooLargeForDomain(domain, this.#options.policyBytes);
    return withDigest({ parts: {}, broken, ...(timeout !== undefined && { timeout }) });
  }

  /** @returns whether it was */
  #noMoreRefused(domain: string, id: string): boolean {
    const refused = this.#refused.get(domain);
    const wasRefused = refused?.delete(id) === true;
    if (refused?.size === 0) this.#refused.delete(domain);
    return wasRefused;
  }

  /** Those first that were refused first: who is refused again goes to the end. */
  #readRefusedAgain(domain: string): void {
    for (const id of [...(this.#refused.get(domain) ?? [])].slice(0, READ_AGAIN)) this.#options.readAgain(id);
  }
}

function isSame(left: CompiledPolicies | undefined, right: CompiledPolicies | undefined): boolean {
  return left?.digest === right?.digest && left?.timeout === right?.timeout;
}
