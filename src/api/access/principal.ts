/** Who sends a request to the API, and what they may do. */
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../errors.js';
import type { Client } from '../../http/trusted-proxies.js';
import type { AuditActor } from '../../model/actor.js';
import { ownerOfActor } from '../../model/owner.js';
import {
  isWithin,
  PERMISSIONS_OF_ROLE,
  type Permission,
  type Role,
  scopeOf,
} from '../../model/permission.js';
import { ALL_RIGHTS, type Rights, rightsOfToken, rightsOfUser } from '../../model/rights.js';
import type { Session } from '../../store/sessions.js';
import type { Token } from '../../store/tokens.js';
import type { User } from '../../store/users.js';

export interface Principal extends Rights {
  readonly actor: AuditActor;
  /** The user whose session it is; undefined without one. */
  readonly user?: User;
  /** The user who made the token; undefined without one, and for one that API_KEY made. */
  readonly maker?: User;
  readonly session?: Session;
}

/** The state of a request, as far as it says who sends it. */
interface Requester {
  readonly state: { readonly principal?: Principal; readonly client: Client };
}

/** The one place that decides it: what is stored about a request comes from here. */
export function actorOf({ state: { principal, client } }: Requester): AuditActor {
  return principal?.actor ?? { kind: 'anonymous', address: client.address };
}

/** Who takes turns with others for what a request needs. */
export function ownerOf(request: Requester): string {
  return ownerOfActor(actorOf(request));
}

/** Somebody without a credential, at a route for everybody. */
export function nobody(address: string): Principal {
  return { actor: { kind: 'anonymous', address }, permissions: new Set(), scope: [] };
}

/** An admin of everything without a name. */
export function unlimited(actor: AuditActor): Principal {
  return { actor, ...ALL_RIGHTS };
}

export function ofSession(user: User, session: Session): Principal {
  return { ...rightsOfUser(user), actor: { kind: 'user', id: user.id, email: user.email }, user, session };
}

/** What a token was given, as far as who made it still has it. @param user who made it; null: API_KEY */
export function ofToken(token: Token, user: User | null): Principal {
  const { id, name, user_id } = token;
  return {
    actor: { kind: 'token', id, name, user_id },
    ...rightsOfToken(token, user ? rightsOfUser(user) : ALL_RIGHTS),
    ...(user && { maker: user }),
  };
}

/** @throws AppError forbidden */
export function requirePermission({ permissions }: Pick<Principal, 'permissions'>, needed: Permission): void {
  if (!permissions.has(needed))
    throw new AppError('forbidden', `The permission ${needed} is missing`, {
      details: { permission: needed },
    });
}

/** Whether they see secrets in configs of services: shared services have secrets of others. */
export function maySeeSecrets({ permissions, scope }: Principal): boolean {
  return permissions.has('secrets:write') && scope === undefined;
}

/** Nobody gives a role, or takes over an account, that may do more than they may. */
export function requireRoleAtLeast({ permissions, scope }: Principal, ...roles: (Role | undefined)[]): void {
  const isWithinOwn = roles.every(
    (role) => role === undefined || [...PERMISSIONS_OF_ROLE[role]].every((one) => permissions.has(one)),
  );
  if (!isWithinOwn || !isWithin(scopeOf([]), scope))
    throw new AppError('forbidden', 'The user has, or would have, permissions that you do not have');
}

/** Whether they are the same, and may do and see the same: a credential may change during an answer that takes long. */
export function isSamePrincipal(one: Principal, other: Principal): boolean {
  return isDeepStrictEqual(comparable(one), comparable(other));
}

function comparable({ actor, permissions, scope, session }: Principal) {
  return {
    actor,
    session: session?.id,
    permissions: [...permissions].sort(),
    scope: scope && [...scope].sort(),
  };
}
