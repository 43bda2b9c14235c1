/**
 * What a caller of the management API may do: every permission, and which of them each role has. Routes name theirs in
 * their definitions; `docs/ACCESS.md` is generated from both.
 */

/** Every permission that a token can be given. */
export const PERMISSIONS = [
  ...(['domains:read', 'domains:write', 'collections:read', 'collections:write'] as const),
  ...(['endpoints:read', 'endpoints:write', 'endpoints:deploy', 'builds:read'] as const),
  ...(['variables:read', 'variables:write', 'secrets:read', 'secrets:write'] as const),
  ...(['services:read', 'services:write', 'objects:read', 'objects:write'] as const),
  ...(['imports:read', 'imports:write', 'jobs:read', 'jobs:write'] as const),
  ...(['logs:read', 'statistics:read', 'alerts:read', 'alerts:write'] as const),
  ...(['users:read', 'users:write', 'tokens:read', 'tokens:write'] as const),
  ...(['audit:read', 'metrics:read', 'queues:write'] as const),
] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** What a route requires: a permission, `authenticated` for whoever is known, or `public` for everybody. */
export type RoutePermission = Permission | 'authenticated' | 'public';

/** Roles of users, the mightiest first. */
export const ROLES = ['admin', 'editor', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

/** Only for administrators: what is of the whole installation, and what is secret. */
const OF_ADMINS: ReadonlySet<Permission> = new Set<Permission>([
  ...(['secrets:write', 'users:read', 'users:write', 'audit:read', 'metrics:read', 'queues:write'] as const),
]);
/** Permissions of viewers besides those that only read: everybody can make tokens that exceed nobody. */
const OF_VIEWERS: ReadonlySet<Permission> = new Set<Permission>(['tokens:write']);

const EDITOR = PERMISSIONS.filter((permission) => !OF_ADMINS.has(permission));
const VIEWER = EDITOR.filter(
  (permission) =>
    (permission.endsWith(':read') && permission !== 'secrets:read') || OF_VIEWERS.has(permission),
);

/** What each role may do. */
export const PERMISSIONS_OF_ROLE: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  admin: new Set(PERMISSIONS),
  editor: new Set(EDITOR),
  viewer: new Set(VIEWER),
};

/** The hosts that somebody may see; undefined: everything, `*` and hosts without a domain included. */
export type Scope = readonly string[] | undefined;

/** Hosts as they are stored: none are everything. */
export function scopeOf(domains: readonly string[]): Scope {
  return domains.length === 0 ? undefined : domains;
}

/** What both allow. */
export function narrowed(one: Scope, other: Scope): Scope {
  if (!one || !other) return one ?? other;
  return one.filter((host) => other.includes(host));
}

/** Whether `inner` allows nothing that `outer` does not. */
export function isWithin(inner: Scope, outer: Scope): boolean {
  if (!outer) return true;
  return inner?.every((host) => outer.includes(host)) ?? false;
}
