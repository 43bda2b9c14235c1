/** Which policies are in force for an endpoint: of each, the nearest counts. */
import type { Policies, PolicyName } from './policies.js';

/** Where a policy is set. */
export type PolicyScope = 'domain' | 'collection' | 'endpoint';

/** What a domain, a collection or an endpoint says. */
export interface PolicyLayer {
  readonly scope: PolicyScope;
  /** Id of the domain, collection or endpoint. */
  readonly ownerId: string;
  readonly policies: Policies | null;
}

/** A policy that is in force, and where it is set. */
export interface PolicyInForce {
  readonly name: PolicyName;
  /** Null: switched off there. */
  readonly policy: NonNullable<Policies[PolicyName]> | null;
  readonly scope: PolicyScope;
  readonly ownerId: string;
}

/** @param layers the farthest first: domain, collection, endpoint */
export function policiesInForce(layers: readonly PolicyLayer[]): PolicyInForce[] {
  const nearest = new Map<string, PolicyInForce>();
  for (const { scope, ownerId, policies } of layers)
    for (const [name, policy] of Object.entries(policies ?? {}))
      nearest.set(name, { name: name as PolicyName, policy: policy ?? null, scope, ownerId });
  return [...nearest.values()].sort((left, right) => (left.name < right.name ? -1 : 1));
}
