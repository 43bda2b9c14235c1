/** Collections: groups of endpoints within a domain. */
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { awaitRouting } from '../../lifecycle/routing.js';
import { normalizeBasePath } from '../../model/route-pattern.js';
import {
  createCollection,
  deleteCollection,
  findCollection,
  listCollections,
  policyBytesOfCollections,
  updateCollection,
} from '../../store/collections.js';
import { findDomain } from '../../store/domains.js';
import { endpointsOfCollection } from '../../store/routed-endpoints.js';
import { mapInParts } from '../../util/pauses.js';
import { admitPolicies } from '../policies/policy-input.js';
import { withPolicyRoom } from '../policies/policy-room.js';
import { turnsOfList } from '../response/list-turns.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import {
  COLLECTION_DEFAULTS,
  CollectionFilter,
  CollectionView,
  CreateCollection,
  UpdateCollection,
} from './collections.schema.js';

const tag = 'Collections';
const presentCollection = presenter(CollectionView);

export const collectionRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/collections',
    permission: 'collections:read',
    summary: 'List collections',
    tag,
    query: CollectionFilter,
    data: Type.Array(CollectionView),
    errors: ['busy'],
    turns: async ({ query, scope }, { store }) =>
      turnsOfList(await policyBytesOfCollections(store, query, scope)),
    handle: async ({ query, scope }, { store }) =>
      mapInParts(await listCollections(store, query, scope), presentCollection),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/domains/{id}/collections',
    permission: 'collections:read',
    summary: 'List the collections of a domain',
    tag,
    params: IdParams,
    data: Type.Array(CollectionView),
    errors: ['busy'],
    turns: async ({ params: { id }, scope }, { store }) =>
      turnsOfList(await policyBytesOfCollections(store, { domain_id: id }, scope)),
    handle: async ({ params: { id }, scope }, { store }) => {
      requireFound(await findDomain(store, id), 'domain', id);
      return mapInParts(await listCollections(store, { domain_id: id }, scope), presentCollection);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/collections',
    permission: 'collections:write',
    summary: 'Create a collection',
    tag,
    body: CreateCollection,
    status: 201,
    data: CollectionView,
    errors: ['not_found', 'name_taken'],
    handle: async ({ body, principal }, deps) => {
      const warnings = await admitPolicies(body.policies, deps, principal);
      const { domain_id: domainId, policies } = body;
      const collection = await withPolicyRoom(deps, { table: 'collections', domainId, policies }, () =>
        createCollection(deps.store, {
          ...COLLECTION_DEFAULTS,
          ...body,
          base_path: normalizeBasePath(body.base_path ?? ''),
        }),
      );
      return new Reply(201, presentCollection(collection), {}, warnings);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/collections/{id}',
    permission: 'collections:read',
    summary: 'Show a collection',
    tag,
    params: IdParams,
    data: CollectionView,
    handle: async ({ params: { id } }, { store }) =>
      presentCollection(requireFound(await findCollection(store, id), 'collection', id)),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/collections/{id}',
    permission: 'collections:write',
    summary:
      'Change the given fields of a collection; a new base path moves its endpoints, and is in force when this answers',
    tag,
    params: IdParams,
    body: UpdateCollection,
    data: CollectionView,
    errors: ['name_taken', 'route_taken'],
    handle: async ({ params: { id }, body, principal }, deps) => {
      const { base_path, ...changes } = body;
      const warnings = await admitPolicies(body.policies, deps, principal);
      const write = { table: 'collections', id, policies: body.policies } as const;
      const updated = await withPolicyRoom(deps, write, () =>
        updateCollection(deps.store, id, {
          ...changes,
          ...(base_path !== undefined && { base_path: normalizeBasePath(base_path ?? '') }),
        }),
      );
      const collection = requireFound(updated, 'collection', id);
      if (base_path !== undefined || changes.enabled !== undefined || changes.policies !== undefined)
        warnings.push(...(await awaitRouting(deps, { ids: await endpointsOfCollection(deps.store, id) })));
      return new Reply(200, presentCollection(collection), {}, warnings);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/collections/{id}',
    permission: 'collections:write',
    summary: 'Delete a collection with its endpoints',
    tag,
    params: IdParams,
    data: Type.Null(),
    handle: async ({ params: { id } }, { store }) => {
      if (!(await deleteCollection(store, id))) throw notFound('collection', id);
      return null;
    },
  }),
];
