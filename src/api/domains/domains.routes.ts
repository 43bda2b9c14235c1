/** Domains: hostnames that collections and endpoints are served under. */
import { Type } from '@sinclair/typebox';
import { AppError, notFound, requireFound } from '../../errors.js';
import { awaitRouting } from '../../lifecycle/routing.js';
import type { Scope } from '../../model/permission.js';
import type { Store } from '../../store/database.js';
import {
  createDomain,
  deleteDomain,
  findDomain,
  hasHiddenEndpoints,
  listDomains,
  policyBytesOfDomains,
  updateDomain,
} from '../../store/domains.js';
import { admitPolicies } from '../policies/policy-input.js';
import { withPolicyRoom } from '../policies/policy-room.js';
import { turnsOfList } from '../response/list-turns.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { CreateDomain, DOMAIN_DEFAULTS, DomainView, UpdateDomain } from './domains.schema.js';

const tag = 'Domains';
const presentDomain = presenter(DomainView);

export const domainRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/domains',
    permission: 'domains:read',
    summary: 'List domains',
    tag,
    query: Type.Object(PageQuery),
    data: Type.Array(DomainView),
    errors: ['busy'],
    turns: async (request, { store }) => turnsOfList(await policyBytesOfDomains(store, listOptions(request))),
    handle: async (request, { store }) => {
      const page = await listDomains(store, listOptions(request));
      return pageReply(request.raw, page, page.rows, presentDomain);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/domains',
    permission: 'domains:write',
    summary: 'Create a domain',
    tag,
    body: CreateDomain,
    status: 201,
    data: DomainView,
    errors: ['host_taken'],
    handle: async ({ body, scope, principal }, deps) => {
      await requireOwnHost(deps.store, body.host, scope);
      const warnings = await admitPolicies(body.policies, deps, principal);
      const write = { table: 'domains', host: body.host, policies: body.policies } as const;
      const domain = await withPolicyRoom(deps, write, () =>
        createDomain(deps.store, { ...DOMAIN_DEFAULTS, ...body, host: body.host.toLowerCase() }),
      );
      return new Reply(201, presentDomain(domain), {}, warnings);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/domains/{id}',
    permission: 'domains:read',
    summary: 'Show a domain',
    tag,
    params: IdParams,
    data: DomainView,
    handle: async ({ params: { id } }, { store }) =>
      presentDomain(requireFound(await findDomain(store, id), 'domain', id)),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/domains/{id}',
    permission: 'domains:write',
    summary:
      'Change the given fields of a domain; a new host is given to its endpoints too, and in force when this answers',
    tag,
    params: IdParams,
    body: UpdateDomain,
    data: DomainView,
    errors: ['host_taken', 'route_taken', 'service_not_for_domain'],
    handle: async ({ params: { id }, body, scope, principal }, deps) => {
      const { host, ...changes } = body;
      if (host !== undefined) await requireOwnHost(deps.store, host, scope);
      const warnings = await admitPolicies(body.policies, deps, principal);
      const write = { table: 'domains', id, host, policies: body.policies } as const;
      const updated = await withPolicyRoom(deps, write, () =>
        updateDomain(deps.store, id, {
          ...changes,
          ...(host !== undefined && { host: host.toLowerCase() }),
        }),
      );
      const domain = requireFound(updated, 'domain', id);
      const isRouted = host !== undefined || changes.enabled !== undefined || changes.policies !== undefined;
      if (isRouted) warnings.push(...(await awaitRouting(deps, { host: domain.host })));
      return new Reply(200, presentDomain(domain), {}, warnings);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/domains/{id}',
    permission: 'domains:write',
    summary: 'Delete a domain with its collections and endpoints',
    tag,
    params: IdParams,
    data: Type.Null(),
    handle: async ({ params: { id } }, { store }) => {
      if (!(await deleteDomain(store, id))) throw notFound('domain', id);
      return null;
    },
  }),
];

/** With the domain of a host come the endpoints that others have made for it before. @throws AppError forbidden */
async function requireOwnHost(store: Store, host: string, scope: Scope): Promise<void> {
  if (scope && (await hasHiddenEndpoints(store, host.toLowerCase())))
    throw new AppError(
      'forbidden',
      `The host "${host}" has endpoints of others, but no domain: let an admin make it`,
    );
}
