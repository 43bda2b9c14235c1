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

/** Of a route: a permission, `authenticated` for whoever is known, or `public` for everybody. */
export type RoutePermission = Permission | 'authenticated' | 'public';
