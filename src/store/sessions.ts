/** The table `sessions`: browsers that are signed in. Only digests of their cookies are stored. */
import type { Store } from './database.js';
import type { User } from './users.js';

/** A row. */
export interface Session {
  readonly id: string;
  readonly hash: string;
  readonly user_id: string;
  readonly address: string;
  readonly agent: string | null;
  readonly created_at: Date;
  readonly seen_at: Date;
}

/** How long a session is valid. */
export interface SessionLimits {
  readonly idleMinutes: number;
  readonly maxHours: number;
}

/** Uses within this time are written once. */
const SEEN_EVERY_SECONDS = 30;
const IS_VALID = `sessions.seen_at > clock_timestamp() - ? * interval '1 minute'
  AND sessions.created_at > clock_timestamp() - ? * interval '1 hour'`;

export async function createSession(
  { knex }: Store,
  session: Pick<Session, 'hash' | 'user_id' | 'address' | 'agent'>,
): Promise<void> {
  await knex('sessions').insert(session);
}

/** The session of a cookie and its user, if it is still valid. @param isUse notes that it was used */
export async function useSession(
  { knex }: Store,
  hash: string,
  { idleMinutes, maxHours }: SessionLimits,
  isUse = true,
): Promise<{ readonly session: Session; readonly user: User } | undefined> {
  const { rows } = await knex.raw<{ rows: { session: Session; user: User }[] }>(
    `SELECT to_jsonb(sessions) AS session, to_jsonb(users) AS user,
            sessions.seen_at < clock_timestamp() - ${SEEN_EVERY_SECONDS} * interval '1 second' AS stale
       FROM sessions JOIN users ON users.id = sessions.user_id WHERE hash = ? AND ${IS_VALID}`,
    [hash, idleMinutes, maxHours],
  );
  const row = rows[0] as { session: Session; user: User; stale: boolean } | undefined;
  if (isUse && row?.stale)
    await knex('sessions')
      .where({ hash })
      .update({ seen_at: knex.raw('clock_timestamp()') as never });
  return row;
}

/** The valid sessions of a user, the newest first. */
export async function sessionsOf(
  { knex }: Store,
  userId: string,
  { idleMinutes, maxHours }: SessionLimits,
): Promise<Session[]> {
  return knex<Session>('sessions')
    .where({ user_id: userId })
    .whereRaw(IS_VALID, [idleMinutes, maxHours])
    .orderBy('created_at', 'desc');
}

/** Addresses from which the user of an account has signed in, of sessions that are kept. */
export async function sessionAddresses({ knex }: Store, email: string): Promise<string[]> {
  return knex('sessions')
    .join('users', 'users.id', 'sessions.user_id')
    .where({ email })
    .distinct()
    .pluck<string[]>('address');
}

/** Ends a session, or all of a user. @returns the id of the user; undefined when there is none */
export async function endSession(
  { knex }: Store,
  which: { readonly hash: string } | { readonly id?: string; readonly user_id: string },
): Promise<string | undefined> {
  const ended = await knex<Session>('sessions').where(which).delete().returning('user_id');
  return ended[0]?.user_id;
}

/** Deletes sessions that are no longer valid, and counts of failed logins that are over. */
export async function pruneSessions(
  { knex }: Store,
  { idleMinutes, maxHours }: SessionLimits,
): Promise<void> {
  await knex('sessions').whereRaw(`NOT (${IS_VALID})`, [idleMinutes, maxHours]).delete();
  await knex('login_failures').whereRaw("began_at < clock_timestamp() - interval '1 day'").delete();
}
