/** Where a request would go: asked of a gateway, which decides it. */
import { type Static, Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import type { RouteMatch, RouteQuery } from '../../internal/gateway-requests.js';
import type { Scope } from '../../model/permission.js';
import { findEndpoint } from '../../store/endpoints.js';
import { isVisible } from '../../store/visibility.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { defineRoute } from '../route/route.js';
import { Id, nullable } from '../route/schemas.js';

const Query = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 255, description: 'As in the Host header' }),
  method: Type.Optional(
    Type.String({ pattern: '^[A-Z]{1,16}$', description: 'In upper case; GET unless given' }),
  ),
  path: Type.String({
    minLength: 1,
    maxLength: 8_192,
    pattern: '^/[!-~]*$',
    description: 'Begins with "/", as a client sends it; a query is not looked at',
  }),
});

const Match = Type.Object(
  {
    endpoint_id: Id,
    name: Type.String(),
    domain: Type.String(),
    method: Type.String(),
    route: Type.String(),
    status: Type.String(),
    params: Type.Record(Type.String(), Type.String(), { description: 'Values of the parameters, decoded' }),
  },
  { title: 'RouteMatch' },
);
const NullableMatch = nullable(Match);

const Routing = Type.Object(
  {
    match: NullableMatch,
    next: Type.Unsafe<Static<typeof NullableMatch>>({
      ...NullableMatch,
      description: 'What the request would hit without that endpoint',
    }),
    reason: nullable(Type.String({ description: 'Why no handler would answer' })),
  },
  { title: 'Routing' },
);

export const routingRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/route',
    permission: 'endpoints:read',
    summary: 'Which endpoint a request would hit, with which parameters, and why none',
    tag: 'Endpoints',
    query: Query,
    data: Routing,
    errors: ['no_gateway'],
    handle: async ({ query: { host, method = 'GET', path }, scope }, deps) => {
      const [withoutQuery = ''] = path.split('?', 1);
      return routing(deps, { host, method, path: withoutQuery }, scope);
    },
  }),
];

async function routing(
  deps: ApiDependencies,
  query: RouteQuery,
  scope: Scope,
): Promise<Static<typeof Routing>> {
  const { found, next, disabled, allow, refusal } = await deps.gateways.route(query);
  const shown = (one: RouteMatch | undefined) => present(deps, one, scope);
  const [match, second] = [await shown(found), await shown(next)];
  if (match) {
    const isServed = match.status === 'running';
    return { match, next: second, reason: isServed ? null : `The endpoint is ${match.status}: start it.` };
  }
  // Deleted since the gateway has answered.
  if (found && !scope) throw new AppError('no_gateway', 'The endpoints are being changed; try again.');
  const off = await shown(disabled);
  const none = (reason: string) => ({ match: null, next: null, reason });
  if (refusal !== undefined) return none(`The gateway answers such a request with 400: ${refusal}`);
  if (off) {
    const which = `${off.name} (${off.endpoint_id}, ${off.method} ${off.domain}${off.route})`;
    return none(`The endpoint ${which} would match, but it, its collection or its domain is disabled.`);
  }
  if (allow.length > 0) return none(`The path has ${allow.join(', ')}, not ${query.method}.`);
  return none(`No endpoint of the host ${query.host}, or of all hosts ("*"), has a route that matches.`);
}

async function present({ store }: ApiDependencies, match: RouteMatch | undefined, scope: Scope) {
  // An endpoint of all hosts, or a deleted one, may not exist for whoever asks.
  if (match && !(await isVisible(store, 'endpoint', match.endpointId, scope))) return null;
  const endpoint = match && (await findEndpoint(store, match.endpointId));
  if (!endpoint) return null;
  const { id, name, domain, method, route, status } = endpoint;
  return { endpoint_id: id, name, domain, method, route, status, params: { ...match.params } };
}
