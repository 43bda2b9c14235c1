/** Who one is, and what one may do. */
import { Type } from '@sinclair/typebox';
import { PERMISSIONS, ROLES } from '../../model/permission.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { Id, nullable, oneOf } from '../route/schemas.js';

export const Me = Type.Object(
  {
    user: nullable(
      Type.Object(
        { id: Id, email: Type.String(), name: Type.String(), role: oneOf(ROLES) },
        { description: 'Of a token: who made it; null where API_KEY did' },
      ),
    ),
    kind: nullable(
      oneOf(['user', 'token', 'api_key', 'anonymous', 'internal', 'import'], {
        description: 'How the request is known; `anonymous` where the API is open, null: not at all',
      }),
    ),
    permissions: Type.Array(oneOf(PERMISSIONS)),
    domains: nullable(Type.Array(Type.String(), { description: 'Hosts; null: all' })),
    sign_in: Type.Array(oneOf(['password', 'oidc']), {
      description: 'The ways to sign in: POST /api/session, and GET /api/session/oidc in a browser',
    }),
  },
  { title: 'Me' },
);

/** @param principal undefined: nobody */
export function presentMe(
  principal: Principal | undefined,
  { identityProvider }: Pick<ApiDependencies, 'identityProvider'>,
) {
  const sign_in: ('password' | 'oidc')[] = identityProvider ? ['password', 'oidc'] : ['password'];
  if (!principal) return { user: null, kind: null, permissions: [], domains: [], sign_in };
  const { actor, permissions, scope } = principal;
  const user = principal.user ?? principal.maker;
  return {
    user: user ? { id: user.id, email: user.email, name: user.name, role: user.role } : null,
    kind: actor.kind,
    permissions: [...permissions],
    domains: scope ? [...scope] : null,
    sign_in,
  };
}
