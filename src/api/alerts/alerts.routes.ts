/** Alerts: webhooks that tell when something begins to go wrong, and when it is over. */
import { lookup } from 'node:dns/promises';
import { Type } from '@sinclair/typebox';
import { AppError, notFound, requireFound, toError } from '../../errors.js';
import { type AlertCondition, type AlertScope, SCOPES_OF_CONDITION } from '../../model/alert-condition.js';
import {
  type Alert,
  countAlerts,
  createAlert,
  deleteAlert,
  eventsOfAlert,
  findAlert,
  listAlerts,
  updateAlert,
} from '../../store/alerts.js';
import type { Store } from '../../store/database.js';
import { isHostOfDomain } from '../../store/domains.js';
import { endpointName } from '../../store/endpoints.js';
import { findService } from '../../store/services.js';
import { isOwn } from '../../store/visibility.js';
import { isPublicAddress, PrivateAddressError, requirePublicHost } from '../../util/public-address.js';
import { newWebhookSecret } from '../../webhooks/webhook.js';
import type { Principal } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { presenter } from '../response/present.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import { AlertChange, AlertEventView, AlertView, CreatedAlert, NewAlert } from './alerts.schema.js';

const tag = 'Alerts';
const path = '/api/alerts/{id}';
const MAX_ALERTS = 100;
/** Most alerts about the domains of who is limited to some, so that nobody uses up those of others. */
const MAX_OF_DOMAINS = 20;
/** How many of all alerts are left to who is not limited: a person can have many tokens, each for other domains. */
const RESERVED = 20;
const LISTED_EVENTS = 100;

const presentEvent = presenter(AlertEventView);

export const alertRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/alerts',
    permission: 'alerts:read',
    summary: 'List alerts',
    tag,
    data: Type.Array(AlertView),
    errors: ['secret_key_mismatch'],
    handle: async ({ scope, principal }, deps) =>
      (await listAlerts(deps.store, scope)).map((alert) => present(alert, deps, principal)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/alerts',
    permission: 'alerts:write',
    summary: 'Send a signed webhook when something begins, and another when it is over',
    tag,
    status: 201,
    body: NewAlert,
    data: CreatedAlert,
    errors: ['too_many_alerts'],
    handle: async ({ body, principal }, deps) => {
      const { on, scope = null, url, secret = newWebhookSecret() } = body;
      requireScope(on, scope);
      await requireLimited(deps.store, principal, scope);
      await requireSubject(deps.store, on, scope);
      await requireUrl(url, deps);
      const { percent = 5, minutes = 5, days = 14, enabled = true } = body;
      const added = {
        ...{ condition: on, scope: stored(scope), percent, minutes, days, enabled },
        url_encrypted: deps.secrets.seal(url),
        secret_encrypted: deps.secrets.seal(secret),
      };
      const alert = await createAlert(deps.store, added, (tx) => requireRoom(tx, principal));
      return { ...present(alert, deps, principal), secret };
    },
  }),

  defineRoute({
    method: 'GET',
    path,
    permission: 'alerts:read',
    summary: 'Show an alert',
    tag,
    params: IdParams,
    data: AlertView,
    errors: ['secret_key_mismatch'],
    handle: async ({ params: { id }, principal }, deps) =>
      present(requireFound(await findAlert(deps.store, id), 'alert', id), deps, principal),
  }),

  defineRoute({
    method: 'PUT',
    path,
    permission: 'alerts:write',
    summary: 'Change the given fields of an alert',
    tag,
    params: IdParams,
    body: AlertChange,
    data: AlertView,
    errors: ['secret_key_mismatch'],
    handle: async ({ params: { id }, body: { url, secret, scope, ...changes }, principal }, deps) => {
      const before = requireFound(await findAlert(deps.store, id), 'alert', id);
      if (scope !== undefined) {
        requireScope(before.condition, scope);
        await requireLimited(deps.store, principal, scope);
        await requireSubject(deps.store, before.condition, scope);
      }
      if (url !== undefined) await requireUrl(url, deps);
      const updated = await updateAlert(deps.store, id, {
        ...changes,
        ...(scope !== undefined && { scope: stored(scope) }),
        ...(url !== undefined && { url_encrypted: deps.secrets.seal(url) }),
        ...(secret !== undefined && { secret_encrypted: deps.secrets.seal(secret) }),
      });
      return present(requireFound(updated, 'alert', id), deps, principal);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path,
    permission: 'alerts:write',
    summary: 'Delete an alert and its events',
    tag,
    params: IdParams,
    data: Deleted,
    handle: async ({ params: { id } }, { store }) => {
      if (!(await deleteAlert(store, id))) throw notFound('alert', id);
      return { id, deleted: true as const };
    },
  }),

  defineRoute({
    method: 'GET',
    path: `${path}/events`,
    permission: 'alerts:read',
    summary: 'List the events of the alert, the newest first, with the outcome of their webhooks',
    tag,
    params: IdParams,
    data: Type.Array(AlertEventView),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findAlert(store, id), 'alert', id);
      return (await eventsOfAlert(store, id, LISTED_EVENTS)).map((event) =>
        presentEvent({ ...event, deliveries: [...event.deliveries] }),
      );
    },
  }),
];

/** @throws AppError too_many_alerts */
async function requireRoom(store: Store, { scope: hosts }: Principal): Promise<void> {
  const most = hosts ? MAX_ALERTS - RESERVED : MAX_ALERTS;
  if ((await countAlerts(store)) >= most)
    throw new AppError('too_many_alerts', `There are ${most} alerts; delete one first.`);
  if (hosts && (await listAlerts(store, hosts)).length >= MAX_OF_DOMAINS)
    throw new AppError('too_many_alerts', `Your domains have ${MAX_OF_DOMAINS} alerts; delete one first.`);
}

const presentColumns = presenter(AlertView);

function present(alert: Alert, { secrets }: Pick<ApiDependencies, 'secrets'>, { permissions }: Principal) {
  const url = secrets.open(alert.url_encrypted);
  // Whoever has the URL of a webhook can often send to it.
  const shown = permissions.has('alerts:write') ? url : `${new URL(url).origin}/***`;
  return presentColumns({ ...alert, on: alert.condition, url: shown });
}

/** An alert about everything, or about a shared service, tells of what others have. */
async function requireLimited(
  store: Store,
  { scope: hosts }: Principal,
  scope: AlertScope | null,
): Promise<void> {
  if (!hosts) return;
  const isLimited =
    scope && (!('service_id' in scope) || (await isOwn(store, 'service', scope.service_id, hosts)));
  if (!isLimited)
    throw new AppError(
      'forbidden',
      'body.scope: must name an endpoint, a domain, or a service that is for your domains alone',
    );
}

/** Hosts of endpoints are in lower case. */
function stored(scope: AlertScope | null): AlertScope | null {
  return scope && 'domain' in scope ? { domain: scope.domain.toLowerCase() } : scope;
}

/** @throws AppError invalid_input when a condition is not about what the scope names */
function requireScope(on: AlertCondition, scope: AlertScope | null): void {
  const members = SCOPES_OF_CONDITION[on];
  if (!scope || Object.keys(scope).every((member) => members.includes(member))) return;
  const named = members.map((member) => (member === 'endpoint_id' ? `an ${member}` : `a ${member}`));
  throw new AppError('invalid_input', `body.scope: of "${on}" it must have ${named.join(' or ')}`);
}

/**
 * An alert about what does not exist would never tell of anything. Hosts of endpoints need no domain, certificates do.
 * @throws AppError not_found
 */
async function requireSubject(store: Store, on: AlertCondition, scope: AlertScope | null): Promise<void> {
  if (!scope) return;
  if ('endpoint_id' in scope)
    requireFound(await endpointName(store, scope.endpoint_id), 'endpoint', scope.endpoint_id);
  else if ('service_id' in scope)
    requireFound(await findService(store, scope.service_id), 'service', scope.service_id);
  else if (on === 'certificate_expiry' && !(await isHostOfDomain(store, scope.domain.toLowerCase())))
    throw new AppError(
      'not_found',
      `body.scope.domain: there is no domain with the host "${scope.domain}"; leave the scope out for all domains`,
    );
}

/** Whoever sends a webhook checks the address again: a name can get another one. */
async function requireUrl(url: string, { config }: Pick<ApiDependencies, 'config'>): Promise<void> {
  if (config.ALLOW_PRIVATE_URLS) return;
  const target = new URL(url);
  try {
    requirePublicHost(target);
    const addresses = await lookup(target.hostname.replace(/^\[|\]$/g, ''), { all: true });
    const refused = addresses.find(({ address }) => !isPublicAddress(address));
    if (refused) throw new PrivateAddressError(refused.address);
  } catch (thrown) {
    const why =
      thrown instanceof PrivateAddressError
        ? `${thrown.message}; ALLOW_PRIVATE_URLS allows it`
        : `the host ${target.hostname} cannot be found (${toError(thrown).message})`;
    throw new AppError('invalid_input', `body.url: ${why}`);
  }
}
