/** Secrets of the installation, which configs of services refer to by name. */
import { Type } from '@sinclair/typebox';
import { notFound } from '../../errors.js';
import {
  deleteInstallationSecret,
  installationSecrets,
  putInstallationSecret,
} from '../../store/installation-secrets.js';
import { presenter } from '../response/present.js';
import { defineRoute } from '../route/route.js';
import { awaitHosts, liveActorHosts } from '../services/service-hosts.js';
import { requireAccepted } from './variable-input.js';
import {
  InstallationSecretParams,
  SecretDeleted,
  SecretSet,
  SecretView,
  SetSecret,
} from './variables.schema.js';

const tag = 'Variables';
const path = '/api/secrets/{name}';
/** An actor host tries a changed config for up to 5 s before it reports the result. */
const CHANGE_MS = 10_000;

const presentSecret = presenter(SecretView);

export const installationSecretRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/secrets',
    permission: 'secrets:read',
    isOfInstallation: true,
    summary: 'List the secrets of the installation, without their values',
    tag,
    data: Type.Array(SecretView),
    handle: async (_request, { store }) =>
      (await installationSecrets(store)).map((secret) =>
        presentSecret({ ...secret, actor: secret.actor && { ...secret.actor } }),
      ),
  }),

  defineRoute({
    method: 'PUT',
    path,
    permission: 'secrets:write',
    isOfInstallation: true,
    summary: 'Set a secret of the installation; active services that use it take the new value',
    tag,
    params: InstallationSecretParams,
    body: SetSecret,
    data: SecretSet,
    handle: async ({ params: { name }, body: { value }, origin }, deps) => {
      requireAccepted(value, 'body.value');
      const hosts = await liveActorHosts(deps);
      const using = await putInstallationSecret(deps.store, name, deps.secrets.seal(value), origin.actor);
      const active = using.filter(({ activated_at }) => activated_at !== null);
      // Calls after the response use the new value.
      await Promise.all(active.map((service) => awaitHosts(deps, hosts, service, CHANGE_MS)));
      return { name };
    },
  }),

  defineRoute({
    method: 'DELETE',
    path,
    permission: 'secrets:write',
    isOfInstallation: true,
    summary: 'Delete a secret of the installation that no service uses',
    tag,
    params: InstallationSecretParams,
    data: SecretDeleted,
    errors: ['secret_in_use'],
    handle: async ({ params: { name } }, { store }) => {
      if (!(await deleteInstallationSecret(store, name))) throw notFound('secret', name);
      return { name, deleted: true as const };
    },
  }),
];
