/** Bindings: which services the code of an endpoint may use. */
import { Type } from '@sinclair/typebox';
import { AppError, requireFound } from '../../errors.js';
import { createBinding, deleteBindings, endpointsUsing, listBindings } from '../../store/bindings.js';
import { findEndpoint } from '../../store/endpoints.js';
import { findService } from '../../store/services.js';
import { presenter } from '../response/present.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { awaitBindings } from '../services/service-hosts.js';
import { BindingView, CreateBinding, UnbindParams, Unbound, UsingEndpointView } from './bindings.schema.js';

const tag = 'Endpoints';
const presentBinding = presenter(BindingView);

export const bindingRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/services',
    permission: 'endpoints:read',
    summary: 'List the services bound to an endpoint',
    tag,
    params: IdParams,
    data: Type.Array(BindingView),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      return (await listBindings(store, id)).map(presentBinding);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/services',
    permission: 'endpoints:write',
    summary: 'Bind a service to an endpoint',
    tag,
    params: IdParams,
    body: CreateBinding,
    status: 201,
    data: BindingView,
    errors: ['pool_id_taken'],
    handle: async ({ params: { id }, body, addAuditDetails }, deps) => {
      const { binding, service } = await createBinding(deps.store, { endpoint_id: id, ...body });
      addAuditDetails({ service_id: service.id, pool_id: binding.pool_id });
      await awaitBindings(deps, [service]);
      return presentBinding(binding);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/endpoints/{endpoint_id}/services/{service_id}',
    permission: 'endpoints:write',
    summary: 'Unbind a service from an endpoint, under all the names it has there',
    tag,
    params: UnbindParams,
    data: Unbound,
    handle: async ({ params: { endpoint_id, service_id }, addAuditDetails }, deps) => {
      const { store } = deps;
      const deleted = await deleteBindings(store, endpoint_id, service_id);
      if (!deleted) {
        requireFound(await findEndpoint(store, endpoint_id), 'endpoint', endpoint_id);
        requireFound(await findService(store, service_id), 'service', service_id);
        throw new AppError(
          'not_found',
          `The service ${service_id} is not bound to the endpoint ${endpoint_id}`,
        );
      }
      addAuditDetails({ unbound: deleted.poolIds });
      await awaitBindings(deps, [deleted.service]);
      return { endpoint_id, service_id, unbound: true as const, pool_ids: deleted.poolIds };
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/services/{id}/endpoints',
    permission: 'endpoints:read',
    summary: 'List the endpoints that a service is bound to, with the names by which their code uses it',
    tag: 'Services',
    params: IdParams,
    data: Type.Array(UsingEndpointView),
    handle: async ({ params: { id }, scope }, { store }) => {
      requireFound(await findService(store, id), 'service', id);
      return endpointsUsing(store, id, scope);
    },
  }),
];
