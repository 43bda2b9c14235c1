/** Whether somebody still may do what they have asked for: it may be done much later. */
import type { Config } from '../config.js';
import { AppError } from '../errors.js';
import type { AuditActor, StoredActor } from '../model/actor.js';
import {
  ALL_RIGHTS,
  lostRights,
  type Rights,
  rightsOfToken,
  rightsOfUser,
  type StoredRights,
} from '../model/rights.js';
import { digestOf } from '../secrets/credentials.js';
import type { Store } from '../store/database.js';
import { findValidToken } from '../store/tokens.js';
import { findUser, hasUsers } from '../store/users.js';

type Settings = Pick<Config, 'API_KEY'>;

/** What was asked for. */
interface RequestOrigin {
  readonly actor: StoredActor | null;
  /** Those of the actor when they asked; null: a process of the version before took the request. */
  readonly rights: StoredRights | null;
}

/** @throws AppError forbidden naming who has asked, and what they have not any more */
export async function requireRightsAsBefore(
  store: Store,
  settings: Settings,
  { actor, rights }: RequestOrigin,
): Promise<void> {
  // Nobody has asked, or an earlier version did not say who.
  if (actor === null) return;
  const who = titleOf(actor as AuditActor);
  const current = await rightsOf(store, settings, actor as AuditActor);
  if (!current)
    throw new AppError('forbidden', `${who} has asked for this, and no longer has any permission`);
  const lost = rights === null ? undefined : lostRights(rights, current);
  if (lost !== undefined)
    throw new AppError(
      'forbidden',
      `${who} has asked for this, and has lost rights since: ${lost}. Ask again.`,
    );
}

/** @returns undefined when they may not use the API any more */
async function rightsOf(store: Store, settings: Settings, actor: AuditActor): Promise<Rights | undefined> {
  if (actor.kind === 'user') {
    const user = await findUser(store, actor.id);
    return user && rightsOfUser(user);
  }
  if (actor.kind === 'token') return rightsOfTokenById(store, settings, actor.id);
  // The API was open, and is not any more.
  if (actor.kind === 'anonymous' && (await hasUsers(store))) return undefined;
  return ALL_RIGHTS;
}

async function rightsOfTokenById(
  store: Store,
  { API_KEY }: Settings,
  id: string,
): Promise<Rights | undefined> {
  const known = await findValidToken(store, { id });
  if (!known) return undefined;
  const { token, user } = known;
  if (user) return rightsOfToken(token, rightsOfUser(user));
  // Made with API_KEY, which may have changed since; a process that does not know it cannot tell.
  if (API_KEY !== undefined && token.key_hash !== digestOf(API_KEY)) return undefined;
  return rightsOfToken(token, ALL_RIGHTS);
}

function titleOf(actor: AuditActor): string {
  if (actor.kind === 'user') return `The user ${actor.email}`;
  if (actor.kind === 'token') return `The token "${actor.name}"`;
  return actor.kind === 'anonymous' ? `Somebody at ${actor.address}` : actor.kind;
}
