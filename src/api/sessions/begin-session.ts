/** Begins the session of a browser, whichever way its user has signed in. */
import type { Config } from '../../config.js';
import { digestOf, newSessionSecret } from '../../secrets/credentials.js';
import { createSession, endSession } from '../../store/sessions.js';
import type { User } from '../../store/users.js';
import { cameByTls, sessionCookie, sessionCookieHeader } from '../access/session-cookie.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiRequest } from '../route/route.js';

const AGENT_CHARACTERS = 200;

/** The part of a request that a session depends on. */
export type SessionRequest = Pick<
  ApiRequest<unknown, unknown, unknown, unknown, unknown>,
  'client' | 'header' | 'addAuditDetails'
>;

/** The session that a browser has, valid or not; undefined when it has none. */
export function sessionHash(
  { client, header }: Pick<SessionRequest, 'client' | 'header'>,
  config: Config,
): string | undefined {
  const cookies = header('cookie') ?? '';
  const isSecure = cameByTls(client, header('host'), config);
  // Earlier versions gave the cookie the other name also when the browser came by TLS.
  const cookie = sessionCookie(cookies, isSecure) ?? sessionCookie(cookies, false);
  return cookie === undefined ? undefined : digestOf(cookie);
}

/**
 * Makes a new session, and ends the one before it.
 * @param before what the browser has, or had when it was sent to the provider
 * @returns `Set-Cookie` for it
 */
export async function beginSession(
  { client, header, addAuditDetails }: SessionRequest,
  { store, config }: Pick<ApiDependencies, 'store' | 'config'>,
  user: User,
  before: string | undefined,
): Promise<string> {
  if (before !== undefined) await endSession(store, { hash: before });
  const secret = newSessionSecret();
  const agent = header('user-agent')?.slice(0, AGENT_CHARACTERS) ?? null;
  await createSession(store, {
    ...{ hash: digestOf(secret), user_id: user.id, address: client.address, agent },
  });
  addAuditDetails({ user_id: user.id });
  return sessionCookieHeader(secret, cameByTls(client, header('host'), config));
}
