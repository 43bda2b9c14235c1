/** Endpoints: a route and the code behind it. Compiling and running them is elsewhere. */
import { type Static, Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { awaitRouting } from '../../lifecycle/routing.js';
import { requireWithinSettings } from '../../model/endpoint-limits.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Scope } from '../../model/permission.js';
import { findCollection } from '../../store/collections.js';
import {
  bytesOfList,
  createEndpoint,
  deleteEndpoint,
  endpointName,
  findEndpoint,
  listEndpoints,
  updateEndpoint,
} from '../../store/endpoints.js';
import { listSourceFiles } from '../../store/source-files.js';
import { mapInParts } from '../../util/pauses.js';
import type { Principal } from '../access/principal.js';
import { admitPolicies } from '../policies/policy-input.js';
import { withPolicyRoom } from '../policies/policy-room.js';
import { admitSource, NOTHING_BESIDE } from '../request/sources.js';
import { turnsOfList } from '../response/list-turns.js';
import { Reply, TextReply } from '../response/reply.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import { listedEndpoint, presentEndpointSummary, showEndpoint } from './endpoints.present.js';
import {
  CreateEndpoint,
  ENDPOINT_DEFAULTS,
  EndpointCode,
  EndpointFilter,
  EndpointSummary,
  EndpointView,
  ListedEndpoint,
  SourceFile,
  UpdateEndpoint,
} from './endpoints.schema.js';

const tag = 'Endpoints';
/** The media type of Rust, which has none that is registered. */
const RUST = 'text/x-rust';
const bodyErrors = { dependencies: 'invalid_dependency' } as const;

function filterOf({ domain, collection_id, enabled }: Static<typeof EndpointFilter>) {
  return {
    ...(domain !== undefined && { domain: domain.toLowerCase() }),
    ...(collection_id !== undefined && { collection_id }),
    ...(enabled !== undefined && { enabled }),
  };
}

/** The endpoints of a collection, for who asks. */
function ofCollection({
  params: { id },
  scope,
  principal,
}: {
  readonly params: { readonly id: string };
  readonly scope: Scope;
  readonly principal: Principal;
}) {
  return [{ collection_id: id }, { scope, owner: ownerOfActor(principal.actor) }] as const;
}

export const endpointRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/endpoints',
    permission: 'endpoints:read',
    summary: 'List endpoints',
    tag,
    query: Type.Object({ ...EndpointFilter.properties, ...PageQuery }),
    data: Type.Array(ListedEndpoint),
    errors: ['busy'],
    turns: async (request, { store }) =>
      turnsOfList(await bytesOfList(store, filterOf(request.query), listOptions(request))),
    handle: async (request, { store }) => {
      const page = await listEndpoints(store, filterOf(request.query), listOptions(request));
      return pageReply(request.raw, page, page.rows, listedEndpoint);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/collections/{id}/endpoints',
    permission: 'endpoints:read',
    summary: 'List the endpoints of a collection, in brief',
    tag,
    params: IdParams,
    data: Type.Array(EndpointSummary),
    errors: ['busy'],
    turns: async (request, { store }) => turnsOfList(await bytesOfList(store, ...ofCollection(request))),
    handle: async (request, { store }) => {
      const { id } = request.params;
      requireFound(await findCollection(store, id), 'collection', id);
      const { rows } = await listEndpoints(store, ...ofCollection(request));
      return mapInParts(rows, presentEndpointSummary);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/endpoints',
    permission: 'endpoints:write',
    summary: 'Create an endpoint',
    tag,
    body: CreateEndpoint,
    bodyErrors,
    status: 201,
    data: EndpointView,
    errors: ['not_found', 'domain_mismatch', 'route_taken'],
    handle: async ({ body, principal }, deps) => {
      if (body.limits) requireWithinSettings(body.limits, deps.config);
      const warnings = await admitPolicies(body.policies, deps, principal);
      const write = { table: 'endpoints', host: body.domain, policies: body.policies } as const;
      const fields = await admitSource(body, deps, async () => {
        const { collection_id: id } = body;
        if (id) requireFound(await findCollection(deps.store, id), 'collection', id);
        return NOTHING_BESIDE;
      });
      const endpoint = await withPolicyRoom(deps, write, () =>
        createEndpoint(deps.store, {
          ...ENDPOINT_DEFAULTS,
          ...fields,
          domain: body.domain.toLowerCase(),
        }),
      );
      return new Reply(201, await showEndpoint(deps.store, endpoint), {}, warnings);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}',
    permission: 'endpoints:read',
    summary: 'Show an endpoint',
    tag,
    params: IdParams,
    data: EndpointView,
    handle: async ({ params: { id } }, { store }) =>
      showEndpoint(store, requireFound(await findEndpoint(store, id), 'endpoint', id)),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/endpoints/{id}',
    permission: 'endpoints:write',
    summary:
      'Change the given fields of an endpoint. Running code is kept until the next start or stop; all else is in force when this answers',
    tag,
    params: IdParams,
    body: UpdateEndpoint,
    bodyErrors,
    data: EndpointView,
    errors: ['domain_mismatch', 'route_taken', 'service_not_for_domain'],
    handle: async ({ params: { id }, body: { domain, ...changes }, principal }, deps) => {
      if (changes.limits) requireWithinSettings(changes.limits, deps.config);
      const warnings = await admitPolicies(changes.policies, deps, principal);
      const write = { table: 'endpoints', id, host: domain, policies: changes.policies } as const;
      const fields = await admitSource(changes, deps, async () =>
        requireFound(await findEndpoint(deps.store, id), 'endpoint', id),
      );
      const updated = await withPolicyRoom(deps, write, () =>
        updateEndpoint(deps.store, id, {
          ...fields,
          ...(domain !== undefined && { domain: domain.toLowerCase() }),
        }),
      );
      const { endpoint, concernsGateways } = requireFound(updated, 'endpoint', id);
      if (concernsGateways) warnings.push(...(await awaitRouting(deps, { ids: [id] })));
      return new Reply(200, await showEndpoint(deps.store, endpoint), {}, warnings);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/code',
    permission: 'endpoints:read',
    summary: 'Show the code of an endpoint: its text, or JSON to a client that prefers this',
    tag,
    params: IdParams,
    data: EndpointCode,
    text: { member: 'code', mediaType: RUST },
    handle: async ({ params: { id }, prefers }, { store }) => {
      const { code } = requireFound(await findEndpoint(store, id), 'endpoint', id);
      const asText = prefers(RUST, 'text/plain', 'application/json') !== 'application/json';
      return asText ? new TextReply(RUST, code ?? '') : { code };
    },
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/endpoints/{id}/code',
    permission: 'endpoints:write',
    summary: 'Replace the code of an endpoint. Running code is kept until the next compile and start',
    tag,
    params: IdParams,
    body: EndpointCode,
    text: { member: 'code', mediaType: RUST },
    data: EndpointView,
    handle: async ({ params: { id }, body: { code } }, { store }) =>
      showEndpoint(store, requireFound(await updateEndpoint(store, id, { code }), 'endpoint', id).endpoint),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/files',
    permission: 'endpoints:read',
    summary: 'List the files beside the code of an endpoint, without contents',
    tag,
    params: IdParams,
    data: Type.Array(SourceFile),
    handle: async ({ params: { id }, scope }, { store }) => {
      requireFound(await endpointName(store, id), 'endpoint', id);
      return listSourceFiles(store, id, scope);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/endpoints/{id}',
    permission: 'endpoints:write',
    summary: 'Delete an endpoint; the gateways stop its process',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id } }, { store }) => {
      if (!(await deleteEndpoint(store, id))) throw notFound('endpoint', id);
      return { id, deleted: true as const };
    },
  }),
];
