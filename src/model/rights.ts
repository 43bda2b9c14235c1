/** What somebody may do, and of which hosts. Pure. */
import {
  isWithin,
  narrowed,
  PERMISSIONS,
  PERMISSIONS_OF_ROLE,
  type Permission,
  type Role,
  type Scope,
  scopeOf,
} from './permission.js';

export interface Rights {
  readonly permissions: ReadonlySet<Permission>;
  readonly scope: Scope;
}

/** Rights as they are stored beside what somebody asked for with them. */
export interface StoredRights {
  readonly permissions: readonly string[];
  /** Null: all hosts. */
  readonly scope: readonly string[] | null;
}

/** What is of the whole installation: nobody who is limited to certain domains has it. */
const OF_INSTALLATION: readonly Permission[] = [
  ...(['users:read', 'users:write', 'audit:read', 'metrics:read', 'queues:write'] as const),
];

/** The rights of an admin who is not limited to certain domains. */
export const ALL_RIGHTS: Rights = { permissions: new Set(PERMISSIONS), scope: undefined };

export function rightsOfUser(user: { readonly role: Role; readonly domains: readonly string[] }): Rights {
  const scope = scopeOf(user.domains);
  return { scope, permissions: within(PERMISSIONS_OF_ROLE[user.role], scope) };
}

/** What a token was given, as far as who made it still has it. */
export function rightsOfToken(
  {
    permissions,
    domains,
  }: { readonly permissions: readonly Permission[]; readonly domains: readonly string[] },
  maker: Rights,
): Rights {
  const scope = narrowed(scopeOf(domains), maker.scope);
  const granted = permissions.filter((permission) => maker.permissions.has(permission));
  return { permissions: within(new Set(granted), scope), scope };
}

export function storedRights({ permissions, scope }: Rights): StoredRights {
  return { permissions: [...permissions].sort(), scope: scope ? [...scope].sort() : null };
}

/** What of rights somebody does not have any more, for people; undefined: nothing. */
export function lostRights(before: StoredRights, { permissions, scope }: Rights): string | undefined {
  const lost = before.permissions.filter((permission) => !permissions.has(permission as Permission));
  const parts = [
    ...(lost.length > 0 ? [`the permissions ${lost.join(', ')}`] : []),
    ...(isWithin(before.scope ?? undefined, scope)
      ? []
      : [`hosts other than ${scope?.join(', ') || 'none'}`]),
  ];
  return parts.length > 0 ? parts.join(', and ') : undefined;
}

function within(permissions: ReadonlySet<Permission>, scope: Scope): ReadonlySet<Permission> {
  if (!scope) return permissions;
  return new Set([...permissions].filter((permission) => !OF_INSTALLATION.includes(permission)));
}
