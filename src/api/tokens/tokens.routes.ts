/** Tokens: credentials of programs, which never may do more than who made them. */
import { type Static, Type } from '@sinclair/typebox';
import { AppError, notFound } from '../../errors.js';
import { isWithin, PERMISSIONS, type Permission, scopeOf } from '../../model/permission.js';
import { digestOf, newToken } from '../../secrets/credentials.js';
import { createToken, deleteToken, listTokens, type Token } from '../../store/tokens.js';
import type { Principal } from '../access/principal.js';
import { expiryOf } from '../request/time-span.js';
import { presenter } from '../response/present.js';
import { defineRoute } from '../route/route.js';
import { Deleted, Id, IdParams, Name, nullable, oneOf, Timestamp } from '../route/schemas.js';

const tag = 'Tokens';

const View = {
  id: Id,
  name: Name,
  user_id: nullable(Type.String({ description: 'Who made it; null: whoever has API_KEY' })),
  permissions: Type.Array(oneOf(PERMISSIONS)),
  domains: Type.Array(Type.String(), { description: 'Hosts; none: all that who made it may see' }),
  created_at: Timestamp,
  expires_at: nullable(Type.String({ format: 'date-time' })),
  last_used_at: nullable(Type.String({ format: 'date-time' })),
};
const TokenView = Type.Object(View, { title: 'Token' });
const CreatedToken = Type.Object(
  { ...View, token: Type.String({ description: 'Shown once' }) },
  { title: 'CreatedToken' },
);
const present = presenter(TokenView);
const view = (token: Token) =>
  present({ ...token, permissions: [...token.permissions], domains: [...token.domains] } as never);

export const tokenRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/tokens',
    permission: 'tokens:read',
    summary: 'List the own tokens; to those who see users, all',
    tag,
    data: Type.Array(TokenView),
    handle: async ({ principal }, { store }) =>
      (await listTokens(store, principal.permissions.has('users:read') ? undefined : ownerOf(principal))).map(
        view,
      ),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/tokens',
    permission: 'tokens:write',
    summary: 'Make a token; the answer has it, and nothing else ever does',
    tag,
    status: 201,
    body: Type.Object({
      name: Name,
      permissions: Type.Array(oneOf(PERMISSIONS), { minItems: 1, maxItems: PERMISSIONS.length }),
      domains: Type.Optional(Type.Array(Type.String({ format: 'hostname' }), { maxItems: 1_000 })),
      expires_at: Type.Optional(nullable(Type.String({ format: 'date-time' }))),
    }),
    data: CreatedToken,
    handle: async ({ body, principal }, { store, config: { API_KEY } }) => {
      const domains = [...new Set((body.domains ?? []).map((host) => host.toLowerCase()))];
      const permissions = [...new Set(body.permissions)];
      const owner = ownerOf(principal);
      requireWithinOwn(principal, permissions, domains);
      const token = newToken();
      const isOfKey = owner.user_id === null && API_KEY !== undefined;
      const created = await createToken(store, {
        ...{ hash: digestOf(token), name: body.name, permissions, domains, ...owner },
        key_hash: isOfKey ? digestOf(API_KEY) : null,
        expires_at: expiryOf(body.expires_at),
      });
      return { ...view(created), token } as Static<typeof CreatedToken>;
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/tokens/{id}',
    permission: 'tokens:write',
    summary: 'Revoke a token',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id }, principal }, { store }) => {
      const owner = principal.permissions.has('users:write') ? undefined : ownerOf(principal);
      if (!(await deleteToken(store, id, owner))) throw notFound('token', id);
      return { id, deleted: true as const };
    },
  }),
];

/** Whose tokens somebody makes. @throws AppError forbidden for those who make none */
function ownerOf({ actor }: Principal): { user_id: string | null } {
  if (actor.kind === 'user') return { user_id: actor.id };
  if (actor.kind === 'api_key') return { user_id: null };
  throw new AppError(
    'forbidden',
    'Tokens are made by users, and with API_KEY; not by other tokens, nor while the API is open',
  );
}

function requireWithinOwn(
  principal: Principal,
  permissions: readonly Permission[],
  domains: readonly string[],
) {
  const missing = permissions.find((permission) => !principal.permissions.has(permission));
  if (missing !== undefined)
    throw new AppError('forbidden', `body.permissions: ${missing} is not one of yours`, {
      details: { permission: missing },
    });
  if (domains.length > 0 && !isWithin(scopeOf(domains), principal.scope))
    throw new AppError('forbidden', 'body.domains: has hosts that are not yours');
}
