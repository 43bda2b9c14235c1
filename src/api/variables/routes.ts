/** Variables and secrets of domains, collections and endpoints, which handlers find in their environment. */
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { findEndpoint } from '../../store/endpoints.js';
import {
  deleteSecret,
  listSecrets,
  plainVariables,
  putSecret,
  replaceVariables,
  type VariableOwner,
  variablesInForce,
} from '../../store/variables.js';
import { presenter } from '../present.js';
import { defineRoute } from '../route.js';
import { IdParams } from '../schemas.js';
import { requireAccepted } from './limits.js';
import {
  EnvironmentEntry,
  SecretDeleted,
  SecretParams,
  SecretSet,
  SecretView,
  SetSecret,
  SetVariables,
  Variables,
} from './schema.js';

const tag = 'Variables';

const presentSecret = presenter(SecretView);
const presentEntry = presenter(EnvironmentEntry);

const SCOPES = [
  ['domain', 'domains'],
  ['collection', 'collections'],
  ['endpoint', 'endpoints'],
] as const;

export const variableRoutes = [
  ...SCOPES.flatMap(([scope, resource]) => {
    const owner = (id: string): VariableOwner => ({ scope, id });
    const at = `/api/${resource}/{id}`;
    return [
      defineRoute({
        method: 'GET',
        path: `${at}/variables`,
        summary: `Show the plain variables of the ${scope}`,
        tag,
        params: IdParams,
        data: Variables,
        handle: async ({ params: { id } }, { store }) =>
          requireFound(await plainVariables(store, owner(id)), scope, id),
      }),

      defineRoute({
        method: 'PUT',
        path: `${at}/variables`,
        summary: `Replace the plain variables of the ${scope}; running handlers are replaced`,
        tag,
        params: IdParams,
        body: SetVariables,
        data: Variables,
        errors: ['name_is_secret'],
        handle: async ({ params: { id }, body, origin }, { store }) => {
          const variables = body as Readonly<Record<string, string>>;
          for (const [name, value] of Object.entries(variables)) requireAccepted(value, `body.${name}`);
          if (!(await replaceVariables(store, owner(id), variables, origin.actor))) throw notFound(scope, id);
          return requireFound(await plainVariables(store, owner(id)), scope, id);
        },
      }),

      defineRoute({
        method: 'GET',
        path: `${at}/secrets`,
        summary: `List the secrets of the ${scope}, without their values`,
        tag,
        params: IdParams,
        data: Type.Array(SecretView),
        handle: async ({ params: { id } }, { store }) =>
          requireFound(await listSecrets(store, owner(id)), scope, id).map((secret) =>
            presentSecret({ ...secret, actor: secret.actor && { ...secret.actor } }),
          ),
      }),

      defineRoute({
        method: 'PUT',
        path: `${at}/secrets/{name}`,
        summary: `Set a secret of the ${scope}; running handlers are replaced`,
        tag,
        params: SecretParams,
        body: SetSecret,
        data: SecretSet,
        handle: async ({ params: { id, name }, body: { value }, origin }, { store, secrets }) => {
          requireAccepted(value, 'body.value');
          const seal = (text: string) => secrets.seal(text);
          if (!(await putSecret(store, owner(id), { name, value, seal }, origin.actor)))
            throw notFound(scope, id);
          return { name };
        },
      }),

      defineRoute({
        method: 'DELETE',
        path: `${at}/secrets/{name}`,
        summary: `Delete a secret of the ${scope}; running handlers are replaced`,
        tag,
        params: SecretParams,
        data: SecretDeleted,
        handle: async ({ params: { id, name } }, { store }) => {
          if (!requireFound(await deleteSecret(store, owner(id), name), scope, id))
            throw notFound('secret', name);
          return { name, deleted: true as const };
        },
      }),
    ];
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/environment',
    summary: 'Show the names of the variables and secrets in force, and where each is set',
    tag,
    params: IdParams,
    data: Type.Array(EnvironmentEntry),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      const variables = await variablesInForce(store, id);
      return variables.map((variable) => presentEntry({ ...variable, secret: variable.value === null }));
    },
  }),
];
