/** Sessions of browsers: sign in, sign out, and who one is. */
import { Type } from '@sinclair/typebox';
import { AppError, notFound, requireFound } from '../../errors.js';
import { rightsOfUser } from '../../model/rights.js';
import { isPassword } from '../../secrets/passwords.js';
import { endSession, type Session, sessionsOf } from '../../store/sessions.js';
import { findUser, userByEmail } from '../../store/users.js';
import { countLogin } from '../access/login-limits.js';
import { type Principal, requireRoleAtLeast } from '../access/principal.js';
import { cameByTls, endedCookieHeader, sessionLimits } from '../access/session-cookie.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { Deleted, Id, IdParams, nullable, Timestamp } from '../route/schemas.js';
import { beginSession, sessionHash } from './begin-session.js';
import { Me, presentMe } from './me.js';

const tag = 'Sessions';

const SessionView = Type.Object(
  {
    id: Id,
    address: Type.String(),
    agent: nullable(Type.String()),
    current: Type.Boolean({ description: 'Of this request' }),
    created_at: Timestamp,
    seen_at: Timestamp,
  },
  { title: 'Session' },
);

export const sessionRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/session',
    permission: 'public',
    summary: 'Tell who one is, and what one may do',
    tag,
    data: Me,
    handle: async ({ identify }, deps) => presentMe(await identify(), deps),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/session',
    permission: 'public',
    summary: 'Sign in: the answer sets the cookie of a session',
    tag,
    status: 201,
    body: Type.Object({
      email: Type.String({ format: 'line', maxLength: 254 }),
      password: Type.String({ maxLength: 1_024 }),
    }),
    data: Me,
    errors: ['login_failed', 'too_many_logins'],
    handle: async ({ body, ...request }, deps) => {
      const { store } = deps;
      const email = body.email.toLowerCase();
      const succeeded = await countLogin(store, email, request.client.address);
      const user = await userByEmail(store, email);
      // The email of nobody may be anything, a password typed at the wrong place for example.
      if (user) request.addAuditDetails({ email });
      // The same work and the same answer, whether there is such a user or not.
      const isRight = await isPassword(user?.password_hash, body.password);
      if (!user || !isRight) throw new AppError('login_failed', 'The email or the password is wrong');
      await succeeded();
      const cookie = await beginSession(request, deps, user, sessionHash(request, deps.config));
      const me = presentMe(
        { ...rightsOfUser(user), actor: { kind: 'user', id: user.id, email }, user },
        deps,
      );
      return new Reply(201, me, { 'Set-Cookie': cookie });
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/session',
    permission: 'public',
    summary: 'Sign out: ends the session of the cookie, if there is one',
    tag,
    data: Me,
    handle: async ({ client, header, addAuditDetails, markAsDryRun }, deps) => {
      const hash = sessionHash({ client, header }, deps.config);
      const user_id = hash === undefined ? undefined : await endSession(deps.store, { hash });
      // Strangers do not fill the audit with what changes nothing.
      if (user_id === undefined) markAsDryRun();
      else addAuditDetails({ user_id });
      const isSecure = cameByTls(client, header('host'), deps.config);
      return new Reply(200, presentMe(undefined, deps), { 'Set-Cookie': endedCookieHeader(isSecure) });
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/sessions',
    permission: 'authenticated',
    summary: 'List the sessions of whoever asks',
    tag,
    data: Type.Array(SessionView),
    handle: ({ principal }, deps) => list(principal.user?.id, principal, deps),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/users/{id}/sessions',
    permission: 'users:read',
    isOpenToOwner: true,
    summary: 'List the sessions of a user',
    tag,
    params: IdParams,
    data: Type.Array(SessionView),
    handle: async ({ params: { id }, principal }, deps) => {
      requireFound(await findUser(deps.store, id), 'user', id);
      return list(id, principal, deps);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/users/{id}/sessions',
    permission: 'users:write',
    isOpenToOwner: true,
    summary: 'End all sessions of a user',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id }, principal }, { store }) => {
      const { role } = requireFound(await findUser(store, id), 'user', id);
      if (principal.user?.id !== id) requireRoleAtLeast(principal, role);
      await endSession(store, { user_id: id });
      return { id, deleted: true as const };
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/sessions/{id}',
    permission: 'authenticated',
    summary: 'End one of the sessions of whoever asks',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id }, principal: { user } }, { store }) => {
      if (!user || !(await endSession(store, { id, user_id: user.id }))) throw notFound('session', id);
      return { id, deleted: true as const };
    },
  }),
];

async function list(userId: string | undefined, { session }: Principal, { store, config }: ApiDependencies) {
  if (userId === undefined) return [];
  return (await sessionsOf(store, userId, sessionLimits(config))).map((one) => present(one, session));
}

function present(session: Session, current: Session | undefined) {
  const { id, address, agent, created_at, seen_at } = session;
  return {
    ...{ id, address, agent, current: id === current?.id },
    created_at: created_at.toISOString(),
    seen_at: seen_at.toISOString(),
  };
}
