/** The policies of all endpoints of a gateway, as its front enforces them. */
import type { Store } from '../store/database.js';
import { wantKeySet } from '../store/key-sets.js';
import type { Logger } from '../util/log.js';
import type { KnownEndpoint } from './compact-endpoint.js';
import type { CompiledPolicies } from './compiled-policies.js';
import type { Environments } from './environments.js';
import { hasPolicies, PolicyCompiler } from './policy-compiler.js';

export class PoliciesInForce {
  readonly #store: Store;
  readonly #environments: Environments;
  readonly #log: Logger;
  /** Of those that have some, by endpoint. */
  readonly #policies = new Map<string, CompiledPolicies>();
  /** Endpoints with other policies than the front has. */
  readonly #unsent = new Set<string>();

  constructor(store: Store, environments: Environments, log: Logger) {
    this.#store = store;
    this.#environments = environments;
    this.#log = log;
  }

  of(endpointId: string): CompiledPolicies | undefined {
    return this.#policies.get(endpointId);
  }

  /** @returns those of the endpoints whose policies the front does not have: it has to get them, see `sent` */
  async update(endpoints: readonly KnownEndpoint[]): Promise<Set<string>> {
    const compiler = new PolicyCompiler(this.#store, this.#environments);
    // All before any counts: one that cannot be read fails the whole change, which is tried again.
    const compiled: [string, CompiledPolicies | undefined][] = [];
    for (const endpoint of endpoints)
      if (hasPolicies(endpoint) || this.#policies.has(endpoint.id))
        compiled.push([endpoint.id, await compiler.compile(endpoint)]);
    for (const [id, after] of compiled) {
      const before = this.#policies.get(id);
      if (before?.digest === after?.digest) continue;
      this.#unsent.add(id);
      if (after) this.#policies.set(id, after);
      else this.#policies.delete(id);
      if (after?.broken !== undefined)
        this.#log.warn({ endpoint_id: id, error: after.broken }, 'a policy lets nobody in');
    }
    return new Set(endpoints.flatMap(({ id }) => (this.#unsent.has(id) ? id : [])));
  }

  /** The front has the policies of these. Until then each update names them again: it may have failed to take them. */
  sent(endpointIds: Iterable<string>): void {
    for (const id of endpointIds) this.#unsent.delete(id);
  }

  /** A token has a key that is not known: its issuer may have a new one. */
  unknownKey(endpointId: string): void {
    const url = this.#policies.get(endpointId)?.auth?.jwt?.jwks_url;
    if (url === undefined) return;
    wantKeySet(this.#store, url).catch((error: unknown) =>
      this.#log.warn({ err: error, url }, 'keys of an issuer could not be asked for'),
    );
  }

  forget(endpointId: string): void {
    this.#policies.delete(endpointId);
    this.#unsent.delete(endpointId);
  }
}
