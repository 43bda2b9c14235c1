/** Sign-in with OpenID Connect: the way to the provider, and the way back. */
import { Type } from '@sinclair/typebox';
import { AppError, toError } from '../../errors.js';
import type { Database } from '../../store/database.js';
import { deleteUser, signInUser, type User, userBySubject } from '../../store/users.js';
import { localPath } from '../../util/local-path.js';
import { CALLBACK_PATH, type IdentityProvider, type KnownPerson } from '../access/identity-provider.js';
import { countReturn } from '../access/login-limits.js';
import { cameByTls } from '../access/session-cookie.js';
import { Reply, TextReply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { beginSession, type SessionRequest, sessionHash } from './begin-session.js';
import { attemptCookieHeader, attemptIn, endedAttemptHeader } from './sign-in-attempt.js';

const tag = 'Sessions';

export const oidcRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/session/oidc',
    permission: 'public',
    summary: 'Sign in with OpenID Connect: sends a browser to the provider, which sends it back',
    tag,
    status: 303,
    query: Type.Object({
      return_to: Type.Optional(
        Type.String({
          maxLength: 1_000,
          description: 'Where to go then: a path of this server; `/` unless given',
        }),
      ),
    }),
    data: Type.Object({ location: Type.String({ description: 'As in the header' }) }),
    errors: ['oidc_unavailable'],
    handle: async ({ query, client, header }, { identityProvider, secrets, config }) => {
      const provider = requireProvider(identityProvider);
      const returnTo = localPath(query.return_to ?? '/');
      if (returnTo === undefined)
        throw new AppError(
          'invalid_input',
          'query.return_to: must be a path of this server, such as /queues',
        );
      const { url, checks } = await provider.begin();
      const isSecure = cameByTls(client, header('host'), config);
      const cookie = attemptCookieHeader(
        { ...checks, returnTo, before: sessionHash({ client, header }, config) },
        secrets,
        isSecure,
      );
      return new Reply(
        303,
        { location: url.href },
        { Location: url.href, 'Set-Cookie': cookie, 'Cache-Control': 'no-store' },
      );
    },
  }),

  defineRoute({
    method: 'GET',
    path: CALLBACK_PATH,
    permission: 'public',
    isReturn: true,
    summary: 'Sign in with OpenID Connect: where the provider sends a browser back; begins a session',
    tag,
    query: Type.Object({ state: Type.Optional(Type.String()) }),
    data: Type.String({ description: 'A page that leads on' }),
    produces: 'text/html',
    errors: [
      ...(['oidc_failed', 'oidc_no_role', 'email_taken', 'last_admin', 'too_many_logins'] as const),
      'oidc_unavailable',
    ],
    handle: async ({ query, client, header, raw, addAuditDetails, log }, deps) => {
      const { identityProvider, secrets, store, config } = deps;
      const provider = requireProvider(identityProvider);
      const isSecure = cameByTls(client, header('host'), config);
      const attempt = attemptIn(header('cookie') ?? '', secrets, isSecure);
      if (!attempt || query.state !== attempt.state)
        throw new AppError(
          'oidc_failed',
          'This sign-in was not started in this browser, or took too long; start it again at /api/session/oidc',
        );
      const succeeded = await countReturn(store, client.address);
      const { search } = new URL(raw.url ?? '', 'http://localhost');
      const person = await provider.finish(search, attempt).catch((thrown: unknown) => {
        // A fault of the provider is not one of who signs in, and is logged anyway.
        if (!(thrown instanceof AppError) || thrown.status >= 500)
          return succeeded().then(() => Promise.reject(thrown));
        log.warn({ err: toError(thrown.cause ?? thrown) }, 'a sign-in with OpenID Connect failed');
        throw thrown;
      });
      const user = await userOf(store, person, addAuditDetails);
      const cookie = await beginSession({ client, header, addAuditDetails }, deps, user, attempt.before);
      await succeeded();
      return pageTo(attempt.returnTo, [cookie, endedAttemptHeader(isSecure)]);
    },
  }),
];

function requireProvider(provider: IdentityProvider | undefined): IdentityProvider {
  if (!provider) throw new AppError('not_found', 'OpenID Connect is not set up here; OIDC_ISSUER does it');
  return provider;
}

/** The row of a person, with what the provider says about them now. Who has no role any more has no user either. */
async function userOf(
  store: Database,
  person: KnownPerson,
  addAuditDetails: SessionRequest['addAuditDetails'],
): Promise<User> {
  const { grant, issuer, subject, email, name } = person;
  if (grant) {
    addAuditDetails({ role: grant.role, domains: grant.domains });
    return signInUser(store, { ...grant, issuer, subject, email, name });
  }
  const before = await userBySubject(store, issuer, subject);
  if (before && (await deleteUser(store, before.id))) addAuditDetails({ deleted_user_id: before.id });
  throw new AppError('oidc_no_role', `No role is mapped to ${email}; ask an administrator of the provider`);
}

/**
 * A page that leads to a path at once. A redirect would not do: browsers would not send the cookie of the session with
 * it, which is `SameSite=Strict`, because the provider began it.
 */
function pageTo(path: string, cookies: string[]): TextReply {
  const place = path.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${place}"><title>Signed in</title></head>
<body><p>You are signed in. <a href="${place}">Go on</a></p></body>
</html>
`;
  return new TextReply('text/html', page, {
    'Set-Cookie': cookies,
    'Cache-Control': 'no-store',
    // The address of this page has the code.
    'Referrer-Policy': 'no-referrer',
    'Content-Security-Policy':
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  });
}
