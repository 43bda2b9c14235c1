/** The policies of all endpoints of a gateway, as its front enforces them. */
import { tooLargeForDomain } from '../../model/policies/room.js';
import type { Store } from '../../store/database.js';
import { wantKeySet } from '../../store/key-sets.js';
import type { Threads } from '../../threads/threads.js';
import type { Logger } from '../../util/log.js';
import { Pauses } from '../../util/pauses.js';
import type { KnownEndpoint } from '../compact-endpoint.js';
import type { Environments } from '../handlers/environments.js';
import { type CompiledPolicies, type PolicyParts, withDigest } from './compiled-policies.js';
import { hasPolicies, PolicyCompiler } from './policy-compiler.js';
import { PolicyRoom } from './policy-room.js';
import { RefusedEndpoints } from './refused-endpoints.js';
import { ValidateTexts } from './validate-texts.js';

export interface PoliciesInForceOptions {
  readonly store: Store;
  readonly environments: Environments;
  readonly log: Logger;
  /** Threads for policies that take long to compile. */
  readonly threads: Pick<Threads, 'run'>;
  /** Bytes of the policies of one host. */
  readonly policyBytes: number;
  /** Has an endpoint given to `update` soon. */
  readonly readAgain: (endpointId: string) => void;
}

/** What an endpoint has. */
interface InForce {
  readonly domain: string;
  readonly policies: CompiledPolicies;
}

/** An endpoint that was read, with what it has and what it gets if its domain has room for it. */
interface Compiled {
  readonly endpoint: KnownEndpoint;
  readonly before: InForce | undefined;
  readonly next: CompiledPolicies | undefined;
}

/**
 * About so many bytes are compiled before it is decided for which of them there is room: what is read together may
 * become larger than a gateway has memory for.
 */
const UNDECIDED_BYTES = 64 * 1024 * 1024;

export class PoliciesInForce {
  readonly #options: PoliciesInForceOptions;
  readonly #validates: ValidateTexts;
  readonly #room: PolicyRoom;
  /** Policies of the endpoints that have some, by the ids of these. */
  readonly #inForce = new Map<string, InForce>();
  /** Endpoints with other policies than the front has. */
  readonly #unsent = new Set<string>();
  /** They let nobody in. */
  readonly #refused: RefusedEndpoints;

  constructor(options: PoliciesInForceOptions) {
    this.#options = options;
    this.#validates = new ValidateTexts(options.threads);
    this.#room = new PolicyRoom(options.policyBytes);
    this.#refused = new RefusedEndpoints(options.readAgain);
  }

  of(endpointId: string): CompiledPolicies | undefined {
    return this.#inForce.get(endpointId)?.policies;
  }

  /**
   * @param endpoints rows that have just been read
   * @returns those whose policies the front does not have: it has to get them, see `sent`
   */
  async update(endpoints: readonly KnownEndpoint[]): Promise<Set<string>> {
    const { store, environments } = this.#options;
    const compiler = new PolicyCompiler(store, environments, this.#validates);
    let compiled: Compiled[] = [];
    const weights = new NewWeights();
    const pauses = new Pauses();
    // One that cannot be read fails the whole change, which is tried again, with rows that are read again.
    for (const endpoint of endpoints) {
      const before = this.#inForce.get(endpoint.id);
      if (hasPolicies(endpoint) || before) {
        const next = await compiler.compile(endpoint, before?.policies.parts);
        compiled.push({ endpoint, before, next });
        weights.add(before?.policies.parts, next?.parts);
      }
      if (weights.sum > UNDECIDED_BYTES) {
        this.#decide(compiled);
        compiled = [];
        weights.clear();
      }
      // Reading and digesting large ones takes long, and there may be a thousand of them.
      await pauses.here();
    }
    this.#decide(compiled);
    for (const endpoint of endpoints) endpoint.forgetValidate();
    return new Set(endpoints.flatMap(({ id }) => (this.#unsent.has(id) ? id : [])));
  }

  /** What they had makes room for what they get. Those first that stay as they are, then those that had room. */
  #decide(compiled: readonly Compiled[]): void {
    const isRefused = ({ domain, id }: KnownEndpoint) => this.#refused.has(domain, id);
    const rank = ({ endpoint, before, next }: Compiled) =>
      isRefused(endpoint) ? 2 : Number(before?.policies.digest !== next?.digest);
    const inOrder = compiled
      .map((one) => ({ ...one, rank: rank(one) }))
      .sort((left, right) => left.rank - right.rank);
    for (const { before } of inOrder) if (before) this.#room.leave(before.domain, before.policies);
    /** Domains that may have room for others now. */
    const changed = new Set<string>();
    for (const { endpoint, before, next } of inOrder) {
      const { id, domain } = endpoint;
      const had = before && !this.#refused.has(before.domain, id);
      if (before) this.#refused.remove(before.domain, id);
      const after = next && this.#admit(endpoint, next);
      if (after) this.#inForce.set(id, { domain, policies: after });
      else this.#inForce.delete(id);
      if (had && (before.domain !== domain || before.policies.digest !== after?.digest))
        changed.add(before.domain);
      if (isSame(before?.policies, after)) continue;
      this.#unsent.add(id);
      if (after?.broken !== undefined)
        this.#options.log.warn({ endpoint_id: id, error: after.broken }, 'a policy lets nobody in');
    }
    const tried = new Set(compiled.map(({ endpoint }) => endpoint.id));
    for (const domain of changed) this.#refused.tryAgain(domain, tried);
    for (const domain of new Set(
      compiled.flatMap(({ endpoint, before }) => [endpoint.domain, before?.domain ?? []].flat()),
    ))
      this.#refused.readNext(domain);
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
    const { domain, policies } = before;
    this.#room.leave(domain, policies);
    const had = !this.#refused.has(domain, endpointId);
    this.#refused.remove(domain, endpointId);
    if (had) this.#refused.tryAgain(domain, new Set());
    else this.#refused.readNext(domain);
  }

  #admit({ id, domain }: KnownEndpoint, next: CompiledPolicies): CompiledPolicies {
    const admitted = this.#room.take(domain, next);
    if (admitted) return admitted;
    this.#refused.add(domain, id);
    const { timeout } = next;
    const broken = tooLargeForDomain(domain, this.#options.policyBytes);
    return withDigest({ parts: {}, broken, ...(timeout !== undefined && { timeout }) });
  }
}

function isSame(left: CompiledPolicies | undefined, right: CompiledPolicies | undefined): boolean {
  return left?.digest === right?.digest && left?.timeout === right?.timeout;
}

/** The bytes of the parts that endpoints get, each once, without those that they have. */
class NewWeights {
  readonly #digests = new Set<string>();
  sum = 0;

  add(before: PolicyParts = {}, next: PolicyParts = {}): void {
    for (const [name, part] of Object.entries(next)) {
      if (part === before[name] || this.#digests.has(part.digest)) continue;
      this.#digests.add(part.digest);
      this.sum += part.weight;
    }
  }

  clear(): void {
    this.#digests.clear();
    this.sum = 0;
  }
}
