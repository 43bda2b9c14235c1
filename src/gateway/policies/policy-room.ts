/** The parts of policies that endpoints have: each is there once for its domain, and what a domain has is limited. */
import type { CompiledPolicies, PolicyPart } from './compiled-policies.js';

/** A part, and how many endpoints have it. */
interface HeldPart {
  readonly part: PolicyPart;
  endpoints: number;
}

interface DomainRoom {
  /** Parts by digest. */
  readonly held: Map<string, HeldPart>;
  weight: number;
}

export class PolicyRoom {
  readonly #domains = new Map<string, DomainRoom>();
  readonly #limit: number;

  /** @param limit bytes of the parts of one domain */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns the same, with the parts that others have already; undefined when the domain has no room for them */
  take(domain: string, policies: CompiledPolicies): CompiledPolicies | undefined {
    const room = this.#domains.get(domain) ?? { held: new Map<string, HeldPart>(), weight: 0 };
    const added = new Map(
      Object.values(policies.parts).flatMap((part) =>
        room.held.has(part.digest) ? [] : [[part.digest, part] as const],
      ),
    );
    const weight = [...added.values()].reduce((sum, part) => sum + part.weight, 0);
    if (weight > 0 && room.weight + weight > this.#limit) return undefined;
    room.weight += weight;
    const parts = Object.entries(policies.parts).map(([name, part]) => {
      const held = room.held.get(part.digest) ?? { part, endpoints: 0 };
      held.endpoints++;
      room.held.set(part.digest, held);
      return [name, held.part] as const;
    });
    if (room.held.size > 0) this.#domains.set(domain, room);
    return { ...policies, parts: Object.fromEntries(parts) };
  }

  /** An endpoint has them no more. */
  leave(domain: string, { parts }: CompiledPolicies): void {
    const room = this.#domains.get(domain);
    if (!room) return;
    for (const { digest, weight } of Object.values(parts)) {
      const held = room.held.get(digest);
      if (!held || --held.endpoints > 0) continue;
      room.held.delete(digest);
      room.weight -= weight;
    }
    if (room.held.size === 0) this.#domains.delete(domain);
  }
}
