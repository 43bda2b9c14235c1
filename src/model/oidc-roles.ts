/** What the claims of a provider of OpenID Connect mean here: `OIDC_ROLE_CLAIM` and `OIDC_ROLES`. */
import type { JsonObject } from '../util/json-object.js';
import { FORMATS } from './formats.js';
import { ROLES, type Role } from './permission.js';

/** What somebody may do. */
export interface Grant {
  readonly role: Role;
  /** Hosts; none: everywhere. */
  readonly domains: readonly string[];
}

/** What each value of the claim gives. */
export type RoleMapping = ReadonlyMap<string, Grant>;

/**
 * Reads `{"operators": "admin", "team-a": {"role": "editor", "domains": ["a.example"]}}`.
 * @throws Error with the place
 */
export function readRoleMapping(setting: JsonObject): RoleMapping {
  return new Map(Object.entries(setting).map(([value, grant]) => [value, readGrant(value, grant)]));
}

function readGrant(value: string, given: unknown): Grant {
  const wrong = (what: string) => new Error(`"${value}": ${what}`);
  const members = typeof given === 'string' ? { role: given } : given;
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    throw wrong(`must be a role (${ROLES.join(', ')}), or {"role": ..., "domains": [...]}`);
  const { role, domains, ...others } = members as JsonObject;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw wrong(`has "${unknown}", but knows role and domains only`);
  const known = ROLES.find((one) => one === role);
  if (!known) throw wrong(`the role must be one of ${ROLES.join(', ')}`);
  if (domains === undefined) return { role: known, domains: [] };
  // An empty list would mean all of them.
  if (!Array.isArray(domains) || domains.length === 0)
    throw wrong('domains must be a list of hosts; leave it out for all');
  for (const host of domains as readonly unknown[]) {
    const problem = typeof host === 'string' ? FORMATS['hostname']?.(host) : 'must be a text';
    if (problem !== undefined) throw wrong(`domains: ${JSON.stringify(host)} ${problem}`);
  }
  return { role: known, domains: (domains as readonly string[]).map((host) => host.toLowerCase()) };
}

/**
 * What a person may do: the mightiest role that one of their values gives, on the domains of all values that give it.
 * @returns undefined when none of them gives anything
 */
export function grantOf(values: readonly string[], mapping: RoleMapping): Grant | undefined {
  const grants = values.flatMap((value) => mapping.get(value) ?? []);
  const role = ROLES.find((one) => grants.some((grant) => grant.role === one));
  if (!role) return undefined;
  const domains = grants.filter((grant) => grant.role === role).map((grant) => grant.domains);
  const isEverywhere = domains.some((hosts) => hosts.length === 0);
  return { role, domains: isEverywhere ? [] : [...new Set(domains.flat())].sort() };
}

/**
 * The values of a claim: of this very name, which may have dots itself (`https://example.com/roles`), else at this path.
 * @returns undefined when there is none; what is no text is left out
 */
export function claimValues(claims: JsonObject, name: string): readonly string[] | undefined {
  const claim = Object.hasOwn(claims, name) ? claims[name] : memberAt(claims, name.split('.'));
  if (claim === undefined) return undefined;
  return (Array.isArray(claim) ? claim : [claim]).filter((value) => typeof value === 'string');
}

function memberAt(claims: JsonObject, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined,
    claims,
  );
}
