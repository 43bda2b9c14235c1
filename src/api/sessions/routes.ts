/** Sessions of browsers: sign in, sign out, and who one is. */
import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { AppError, notFound } from '../../errors.js';
import { PERMISSIONS, ROLES } from '../../model/permission.js';
import { digestOf, newSessionSecret } from '../../secrets/credentials.js';
import { isPassword } from '../../secrets/passwords.js';
import { countAttempt, forgetAttempt, type LoginLimit } from '../../store/login-failures.js';
import { createSession, endSession, type Session, sessionsOf } from '../../store/sessions.js';
import { userByEmail } from '../../store/users.js';
import { ofUser, type Principal } from '../principal.js';
import { defineRoute, Reply } from '../route.js';
import { Deleted, Id, IdParams, nullable, oneOf, Timestamp } from '../schemas.js';
import {
  cameByTls,
  endedCookieHeader,
  sessionCookie,
  sessionCookieHeader,
  sessionLimits,
} from '../session-cookie.js';

const tag = 'Sessions';

const Me = Type.Object(
  {
    user: nullable(Type.Object({ id: Id, email: Type.String(), name: Type.String(), role: oneOf(ROLES) })),
    kind: nullable(
      oneOf(['user', 'token', 'api_key', 'anonymous', 'internal', 'import'], {
        description: 'How the request is known; `anonymous` where the API is open, null: not at all',
      }),
    ),
    permissions: Type.Array(oneOf(PERMISSIONS)),
    domains: nullable(Type.Array(Type.String(), { description: 'Hosts; null: all' })),
  },
  { title: 'Me' },
);

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

/** Failures of one address at one account, of one account, and of one address, in a quarter of an hour. */
const FAILURES = { both: 5, account: 50, address: 20 };
const AGENT_CHARACTERS = 200;

export const sessionRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/session',
    permission: 'public',
    summary: 'Tell who one is, and what one may do',
    tag,
    data: Me,
    handle: async ({ identify }) => presentMe(await identify()),
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
    handle: async ({ body, header, raw, tell }, { store }) => {
      const email = body.email.toLowerCase();
      const address = raw.socket.remoteAddress ?? 'unknown';
      const [limits, both] = limitsOf(email, address);
      const wait = await countAttempt(store, limits);
      if (wait !== undefined) {
        throw new AppError('too_many_logins', `Too many logins have failed; try again in ${wait} s`, {
          details: { retry_after_seconds: wait },
        });
      }
      const user = await userByEmail(store, email);
      // The same work and the same answer, whether there is such a user or not.
      const isRight = await isPassword(user?.password_hash, body.password);
      if (!user || !isRight) throw new AppError('login_failed', 'The email or the password is wrong');
      await forgetAttempt(store, limits, both);
      const before = sessionCookie(header('cookie') ?? '');
      if (before !== undefined) await endSession(store, { hash: digestOf(before) });
      const secret = newSessionSecret();
      const agent = header('user-agent')?.slice(0, AGENT_CHARACTERS) ?? null;
      await createSession(store, { hash: digestOf(secret), user_id: user.id, address, agent });
      tell({ user_id: user.id });
      const me = presentMe({ ...ofUser(user), actor: { kind: 'user', id: user.id, email }, user });
      return new Reply(201, me, { 'Set-Cookie': sessionCookieHeader(secret, cameByTls(header)) });
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/session',
    permission: 'public',
    summary: 'Sign out: ends the session of the cookie, if there is one',
    tag,
    data: Me,
    handle: async ({ header }, { store }) => {
      const cookie = sessionCookie(header('cookie') ?? '');
      if (cookie !== undefined) await endSession(store, { hash: digestOf(cookie) });
      return new Reply(200, presentMe(undefined), { 'Set-Cookie': endedCookieHeader(cameByTls(header)) });
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/sessions',
    permission: 'authenticated',
    summary: 'List the sessions of whoever asks',
    tag,
    data: Type.Array(SessionView),
    handle: async ({ principal: { user, session } }, { store, config }) => {
      if (!user) return [];
      return (await sessionsOf(store, user.id, sessionLimits(config))).map((one) => present(one, session));
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

function presentMe(principal: Principal | undefined) {
  if (!principal) return { user: null, kind: null, permissions: [], domains: [] };
  const { user, actor, permissions, scope } = principal;
  return {
    user: user ? { id: user.id, email: user.email, name: user.name, role: user.role } : null,
    kind: actor.kind,
    permissions: [...permissions],
    domains: scope ? [...scope] : null,
  };
}

function present(session: Session, current: Session | undefined) {
  const { id, address, agent, created_at, seen_at } = session;
  return {
    ...{ id, address, agent, current: id === current?.id },
    created_at: created_at.toISOString(),
    seen_at: seen_at.toISOString(),
  };
}

function limitsOf(email: string, address: string): [LoginLimit[], string] {
  const key = (...parts: string[]) => createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  const both = key('both', email, address);
  return [
    [
      { key: both, failures: FAILURES.both },
      { key: key('account', email), failures: FAILURES.account },
      { key: key('address', address), failures: FAILURES.address },
    ],
    both,
  ];
}
