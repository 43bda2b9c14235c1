/** Variables and secrets of domains, collections and endpoints, which handlers find in their environment. */
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { awaitRouting } from '../../lifecycle/routing.js';
import { findEndpoint } from '../../store/endpoints.js';
import {
  changeVariables,
  deleteSecret,
  listSecrets,
  plainVariables,
  putSecret,
  replaceVariables,
  type VariableOwner,
  variablesInForce,
} from '../../store/variables.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { requireAccepted } from './variable-input.js';
import {
  ChangeVariables,
  EnvironmentEntry,
  SecretDeleted,
  SecretParams,
  SecretSet,
  SecretView,
  SetSecret,
  SetVariables,
  Variables,
} from './variables.schema.js';

const tag = 'Variables';

const presentSecret = presenter(SecretView);
const presentEntry = presenter(EnvironmentEntry);

const SCOPES = [
  ['domain', 'domains'],
  ['collection', 'collections'],
  ['endpoint', 'endpoints'],
] as const;

function requireAllAccepted(variables: Readonly<Record<string, string | null>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value !== null) requireAccepted(value, `body.${name}`);
  }
}

/** The answer to a change of plain variables. @param ids the endpoints that they are in force for */
async function changed(deps: ApiDependencies, owner: VariableOwner, ids: readonly string[]) {
  const shown = requireFound(await plainVariables(deps.store, owner), owner.scope, owner.id);
  return new Reply(200, shown, {}, await awaitRouting(deps, { ids }));
}

export const variableRoutes = [
  ...SCOPES.flatMap(([scope, resource]) => {
    const owner = (id: string): VariableOwner => ({ scope, id });
    const at = `/api/${resource}/{id}`;
    return [
      defineRoute({
        method: 'GET',
        path: `${at}/variables`,
        permission: 'variables:read',
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
        permission: 'variables:write',
        summary: `Replace the plain variables of the ${scope}; in force in running handlers with the answer`,
        tag,
        params: IdParams,
        body: SetVariables,
        data: Variables,
        errors: ['name_is_secret'],
        handle: async ({ params: { id }, body, origin, addAuditDetails }, deps) => {
          const variables = body as Readonly<Record<string, string>>;
          requireAllAccepted(variables);
          const affected = await replaceVariables(deps.store, owner(id), variables, origin.actor);
          const ids = requireFound(affected, scope, id);
          addAuditDetails({ variables: Object.keys(variables) });
          return changed(deps, owner(id), ids);
        },
      }),

      defineRoute({
        method: 'PATCH',
        path: `${at}/variables`,
        permission: 'variables:write',
        summary: `Set or delete some plain variables of the ${scope}; in force in running handlers with the answer`,
        tag,
        params: IdParams,
        body: ChangeVariables,
        data: Variables,
        errors: ['name_is_secret'],
        handle: async ({ params: { id }, body, origin, addAuditDetails }, deps) => {
          const changes = body as Readonly<Record<string, string | null>>;
          requireAllAccepted(changes);
          const affected = await changeVariables(deps.store, owner(id), changes, origin.actor);
          const ids = requireFound(affected, scope, id);
          addAuditDetails({ variables: Object.keys(changes) });
          return changed(deps, owner(id), ids);
        },
      }),

      defineRoute({
        method: 'GET',
        path: `${at}/secrets`,
        permission: 'secrets:read',
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
        permission: 'secrets:write',
        summary: `Set a secret of the ${scope}; in force in running handlers with the answer`,
        tag,
        params: SecretParams,
        body: SetSecret,
        data: SecretSet,
        handle: async ({ params: { id, name }, body: { value }, origin }, deps) => {
          requireAccepted(value, 'body.value');
          const { store, secrets } = deps;
          const seal = (text: string) => secrets.seal(text);
          const affected = await putSecret(store, owner(id), { name, value, seal }, origin.actor);
          const ids = requireFound(affected, scope, id);
          return new Reply(200, { name }, {}, await awaitRouting(deps, { ids }));
        },
      }),

      defineRoute({
        method: 'DELETE',
        path: `${at}/secrets/{name}`,
        permission: 'secrets:write',
        summary: `Delete a secret of the ${scope}; in force in running handlers with the answer`,
        tag,
        params: SecretParams,
        data: SecretDeleted,
        handle: async ({ params: { id, name } }, deps) => {
          const affected = requireFound(await deleteSecret(deps.store, owner(id), name), scope, id);
          if (affected === 'none') throw notFound('secret', name);
          const warnings = await awaitRouting(deps, { ids: affected });
          return new Reply(200, { name, deleted: true }, {}, warnings);
        },
      }),
    ];
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/environment',
    permission: 'variables:read',
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
