/** Services: backends that handlers use by way of bindings. */
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { openConfig } from '../../lifecycle/open-config.js';
import { ownerOfActor } from '../../model/owner.js';
import { secretsIn } from '../../model/secret-references.js';
import { parseStoredConfig, type ServiceType, type StoredConfig } from '../../model/service-configs.js';
import { movedFile } from '../../model/sqlite-folders.js';
import { endpointsUsing, type UsingEndpoint } from '../../store/bindings.js';
import { setInactive } from '../../store/service-activity.js';
import {
  createService,
  deleteService,
  findService,
  listServices,
  type Service,
  updateService,
} from '../../store/services.js';
import { maySeeSecrets, type Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { Reply } from '../response/reply.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import { activateService, awaitInactive, deactivateService } from './activity.js';
import { refuseHidden, withStored } from './redaction.js';
import { awaitHosts, liveActorHosts } from './service-hosts.js';
import { domainsFor, requireMayWrite } from './service-input.js';
import { presentActivity, presentService, presentServices } from './services.present.js';
import {
  ConnectionTestSchema,
  CreateService,
  ServiceActivity,
  ServiceView,
  UpdateService,
} from './services.schema.js';

const tag = 'Services';
const bodyErrors = { config: 'invalid_config' } as const;
/** An actor host tries a changed config for up to 5 s before it reports the result. */
const CHANGE_MS = 10_000;
/** So many endpoints are named in a warning. */
const MAX_NAMED = 5;

/** The warning about endpoints that lose a service because it is deleted. */
function lostBindings(using: readonly UsingEndpoint[]): string {
  const named = using.slice(0, MAX_NAMED).map(({ method, domain, route }) => `${method} ${domain}${route}`);
  const more = using.length > MAX_NAMED ? ` and ${using.length - MAX_NAMED} more` : '';
  return `Endpoints were bound to it, whose calls of it fail from now on: ${named.join(', ')}${more}`;
}

export const serviceRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/services',
    permission: 'services:read',
    summary: 'List services',
    tag,
    query: Type.Object(PageQuery),
    data: Type.Array(ServiceView),
    errors: ['secret_key_mismatch'],
    handle: async (request, deps) => {
      const page = await listServices(deps.store, listOptions(request));
      const shown = await presentServices(page.rows, hiding(deps, request.principal));
      return pageReply(request.raw, page, shown, (service) => service);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services',
    permission: 'services:write',
    summary: 'Create a service',
    tag,
    body: CreateService,
    bodyErrors,
    status: 201,
    data: ServiceView,
    errors: ['name_taken'],
    handle: async ({ body, principal }, all) => {
      const deps = hiding(all, principal);
      const domains = domainsFor(principal, body.domains ?? [...(principal.scope ?? [])]);
      if (deps.config.REDACT_SECRETS) refuseHidden(body.service_type, body.config);
      const config = parseStoredConfig(body.service_type, body.config);
      const write = { type: body.service_type, before: undefined, after: config, given: body.config };
      requireMayWrite(deps, principal, write);
      const service = {
        name: body.name,
        service_type: body.service_type,
        config_encrypted: deps.secrets.seal(JSON.stringify(config)),
        enabled: body.enabled ?? true,
        domains,
        stack: body.stack ?? null,
      };
      const { scope } = principal;
      const created = await createService(deps.store, service, secretsIn(config), { scope });
      return presentService(created, deps);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/services/{id}',
    permission: 'services:read',
    summary: 'Show a service',
    tag,
    params: IdParams,
    data: ServiceView,
    errors: ['secret_key_mismatch'],
    handle: async ({ params: { id }, principal }, deps) =>
      presentService(requireFound(await findService(deps.store, id), 'service', id), hiding(deps, principal)),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/services/{id}',
    permission: 'services:write',
    summary: 'Change the given fields of a service; of `config`, too: null sets one back to its default',
    tag,
    params: IdParams,
    body: UpdateService,
    bodyErrors,
    data: ServiceView,
    errors: ['secret_key_mismatch', 'name_taken'],
    handle: async ({ params: { id }, body: { config, domains, ...others }, principal }, all) => {
      const deps = hiding(all, principal);
      const changes = { ...others, ...(domains && { domains: domainsFor(principal, domains) }) };
      const hosts = await liveActorHosts(deps);
      const changesOf = (before: Service) => {
        if (config === undefined) return changes;
        const type = before.service_type;
        const stored = openConfig(before, deps.secrets);
        const after = changedConfig(deps, type, stored, config);
        requireMayWrite(deps, principal, { type, before: stored, after, given: config });
        const config_encrypted = deps.secrets.seal(JSON.stringify(after));
        const moved = movedFile(type, stored, after);
        return {
          ...changes,
          config_encrypted,
          secrets: secretsIn(after),
          ...(moved && { moved }),
        };
      };
      const mentioned = secretsIn(config ?? {});
      const updated = await updateService(deps.store, id, mentioned, changesOf, principal.scope);
      const { before, after } = requireFound(updated, 'service', id);
      // Calls after the response use the new config.
      if (before.activated_at) await awaitHosts(deps, hosts, after, CHANGE_MS);
      return presentService(after, deps);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/services/{id}',
    permission: 'services:write',
    summary: 'Delete a service and its bindings',
    tag,
    params: IdParams,
    data: Deleted,
    errors: ['wait_timeout'],
    handle: async ({ params: { id }, scope }, deps) => {
      const using = await endpointsUsing(deps.store, id, scope);
      const hosts = await liveActorHosts(deps);
      const { service } = requireFound(await setInactive(deps.store, id), 'service', id);
      // Active calls finish first, as in a deactivation.
      await awaitInactive(deps, hosts, service);
      if (!(await deleteService(deps.store, id))) throw notFound('service', id);
      return new Reply(200, { id, deleted: true }, {}, using.length > 0 ? [lostBindings(using)] : []);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/activate',
    permission: 'services:write',
    summary: 'Start the actor of a service',
    tag,
    envelope: 'success',
    params: IdParams,
    data: ServiceActivity,
    errors: ['service_disabled', 'no_actor_host'],
    handle: async ({ params: { id } }, deps) => {
      const { service, message } = await activateService(deps, id);
      return presentActivity(service, true, message);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/deactivate',
    permission: 'services:write',
    summary: 'Stop the actor of a service, after the operations under way',
    tag,
    envelope: 'success',
    params: IdParams,
    data: ServiceActivity,
    errors: ['wait_timeout'],
    handle: async ({ params: { id } }, deps) => {
      const { service, message } = await deactivateService(deps, id);
      return presentActivity(service, false, message);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/services/{id}/test',
    permission: 'services:write',
    summary: 'Try to reach the backend of a service, active or not',
    tag,
    params: IdParams,
    data: ConnectionTestSchema,
    errors: ['no_actor_host'],
    handle: async ({ params: { id }, principal }, { store, actorHosts }) => {
      requireFound(await findService(store, id), 'service', id);
      return actorHosts.testService(id, ownerOfActor(principal.actor));
    },
  }),
];

/** Hides secrets from those who may not see them, as REDACT_SECRETS does from everybody. */
function hiding(deps: ApiDependencies, principal: Principal): ApiDependencies {
  const { config } = deps;
  if (config.REDACT_SECRETS || maySeeSecrets(principal)) return deps;
  return { ...deps, config: { ...config, REDACT_SECRETS: true } };
}

/** A changed config, complete; with REDACT_SECRETS, hidden secrets keep their values. */
function changedConfig(
  { config }: ApiDependencies,
  type: ServiceType,
  before: StoredConfig,
  sent: object,
): StoredConfig {
  const given = config.REDACT_SECRETS ? withStored(type, before, sent) : sent;
  const merged = Object.entries({ ...before, ...given }).filter(([, value]) => value !== null);
  return parseStoredConfig(type, Object.fromEntries(merged));
}
