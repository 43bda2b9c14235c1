/** Services: backends that handlers use by way of bindings. */
import { Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import { parseServiceConfig } from '../../service-configs.js';
import {
  createService,
  deleteService,
  findService,
  listServices,
  updateService,
} from '../../store/services.js';
import { found, notFound } from '../found.js';
import { defineRoute } from '../route.js';
import { Deleted, IdParams } from '../schemas.js';
import { presentService } from './present.js';
import { ConnectionTest, CreateService, ServiceActivity, ServiceView, UpdateService } from './schema.js';

const tag = 'Services';
const bodyErrors = { config: 'invalid_config' } as const;

export const serviceRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/services',
    summary: 'List services',
    tag,
    data: Type.Array(ServiceView),
    errors: ['secret_key_mismatch'],
    handle: async (_request, { store, secrets }) =>
      (await listServices(store)).map((service) => presentService(service, secrets)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services',
    summary: 'Create a service',
    tag,
    body: CreateService,
    bodyErrors,
    status: 201,
    data: ServiceView,
    handle: async ({ body }, { store, secrets }) => {
      const config = parseServiceConfig(body.service_type, body.config);
      const created = await createService(store, {
        name: body.name,
        service_type: body.service_type,
        config_encrypted: secrets.seal(JSON.stringify(config)),
        enabled: body.enabled ?? true,
      });
      return presentService(created, secrets);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/services/{id}',
    summary: 'Show a service',
    tag,
    params: IdParams,
    data: ServiceView,
    errors: ['secret_key_mismatch'],
    handle: async ({ params: { id } }, { store, secrets }) =>
      presentService(found(await findService(store, id), 'service', id), secrets),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/services/{id}',
    summary: 'Change the given fields of a service; a config replaces the whole one before',
    tag,
    params: IdParams,
    body: UpdateService,
    bodyErrors,
    data: ServiceView,
    errors: ['secret_key_mismatch'],
    handle: async ({ params: { id }, body: { config, ...changes } }, { store, secrets }) => {
      const { service_type } = found(await findService(store, id), 'service', id);
      const updated = await updateService(store, id, {
        ...changes,
        ...(config !== undefined && {
          config_encrypted: secrets.seal(JSON.stringify(parseServiceConfig(service_type, config))),
        }),
      });
      return presentService(found(updated, 'service', id), secrets);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/services/{id}',
    summary: 'Delete a service and its bindings',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id } }, { store }) => {
      if (!(await deleteService(store, id))) throw notFound('service', id);
      return { id, deleted: true as const };
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/activate',
    summary: 'Start the actor of a service',
    tag,
    envelope: 'success',
    params: IdParams,
    data: ServiceActivity,
    errors: ['not_implemented'],
    handle: async ({ params: { id } }, { store }) => {
      found(await findService(store, id), 'service', id);
      throw new AppError('not_implemented', 'Services cannot be activated in this version');
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/deactivate',
    summary: 'Stop the actor of a service, after the operations under way',
    tag,
    envelope: 'success',
    params: IdParams,
    data: ServiceActivity,
    errors: ['not_implemented'],
    handle: async ({ params: { id } }, { store }) => {
      found(await findService(store, id), 'service', id);
      throw new AppError('not_implemented', 'Services cannot be deactivated in this version');
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/test',
    summary: 'Try to reach the backend of a service',
    tag,
    params: IdParams,
    data: ConnectionTest,
    errors: ['not_implemented'],
    handle: async ({ params: { id } }, { store }) => {
      found(await findService(store, id), 'service', id);
      throw new AppError('not_implemented', 'Connections cannot be tested in this version');
    },
  }),
];
