/** What policies are in force for an endpoint, and the keys of callers of a domain. */
import { randomBytes } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { awaitRouting } from '../../lifecycle/routing.js';
import { policiesInForce } from '../../model/policies/in-force.js';
import { problemOfSecret } from '../../model/policies/named-secrets.js';
import type { AuthPolicy } from '../../model/policies/policies.js';
import { digestOf } from '../../secrets/credentials.js';
import type { Store } from '../../store/database.js';
import { createDomainKey, deleteDomainKey, listDomainKeys } from '../../store/domain-keys.js';
import { findDomain } from '../../store/domains.js';
import { readKeySet } from '../../store/key-sets.js';
import { policyLayers } from '../../store/policies.js';
import { variablesInForce } from '../../store/variables.js';
import { expiryOf } from '../request/time-span.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import {
  CreateDomainKey,
  CreatedDomainKey,
  DomainKeyParams,
  DomainKeyView,
  PoliciesView,
} from './policies.schema.js';

const tag = 'Policies';
const presentKey = presenter(DomainKeyView);
const presentCreated = presenter(CreatedDomainKey);

/** How keys begin, so that scanners for secrets know them. */
const KEY_PREFIX = 'egk_';
const KEY_BYTES = 32;
/** Characters of a key that are shown, to distinguish it from others. */
const SHOWN_CHARACTERS = 10;

export const policyRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/policies',
    permission: 'endpoints:read',
    summary: 'Show the policies in force, and where each is set',
    tag,
    params: IdParams,
    data: PoliciesView,
    handle: async ({ params: { id } }, { store }) => {
      const { layers, domainId } = requireFound(await policyLayers(store, id), 'endpoint', id);
      const inForce = policiesInForce(layers);
      const policies = Object.fromEntries(
        inForce.flatMap(({ name, policy }) => (policy === null ? [] : [[name, policy]])),
      );
      const auth = policies['auth'] as AuthPolicy | undefined;
      return {
        policies,
        sources: Object.fromEntries(
          inForce.map(({ name, scope, ownerId }) => [name, { scope, owner_id: ownerId }]),
        ),
        problems: auth ? await problemsOf(store, id, domainId, auth) : [],
      };
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/domains/{id}/keys',
    permission: 'domains:read',
    summary: 'List the keys of callers of a domain, without the keys themselves',
    tag,
    params: IdParams,
    data: Type.Array(DomainKeyView),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findDomain(store, id), 'domain', id);
      return (await listDomainKeys(store, id)).map(presentKey);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/domains/{id}/keys',
    permission: 'domains:write',
    summary: 'Make a key for callers of a domain; it is shown once, and in force when this answers',
    tag,
    params: IdParams,
    body: CreateDomainKey,
    status: 201,
    data: CreatedDomainKey,
    handle: async ({ params: { id }, body: { label, expires_at }, origin, addAuditDetails }, deps) => {
      const expiresAt = expiryOf(expires_at);
      const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
      const row = {
        label,
        hash: digestOf(key),
        prefix: key.slice(0, SHOWN_CHARACTERS),
        expires_at: expiresAt,
      };
      const created = requireFound(await createDomainKey(deps.store, id, row, origin.actor), 'domain', id);
      addAuditDetails({ key_id: created.key.id, label });
      const warnings = await awaitRouting(deps, { host: created.host });
      return new Reply(201, presentCreated({ ...created.key, key }), {}, warnings);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/domains/{id}/keys/{key_id}',
    permission: 'domains:write',
    summary: 'Revoke a key of callers of a domain; it is refused when this answers',
    tag,
    params: DomainKeyParams,
    data: Deleted,
    handle: async ({ params: { id, key_id } }, deps) => {
      const deleted = await deleteDomainKey(deps.store, id, key_id);
      if (!deleted) throw notFound('key', key_id);
      const warnings = await awaitRouting(deps, { host: deleted.host });
      return new Reply(200, { id: key_id, deleted: true }, {}, warnings);
    },
  }),
];

async function problemsOf(
  store: Store,
  endpointId: string,
  domainId: string | null,
  { api_key, basic, hmac, jwt }: AuthPolicy,
): Promise<string[]> {
  const named = [...Object.values(basic?.users ?? {}), ...(hmac ? [hmac.secret] : [])];
  const known = named.length > 0 ? await variablesInForce(store, endpointId) : [];
  const wrong = named.flatMap((name) => {
    const variable = known.find((one) => one.name === name);
    const isPlain = variable?.value_encrypted === null;
    return variable && !isPlain ? [] : [problemOfSecret(name, isPlain)];
  });
  const keySet = jwt?.jwks_url === undefined ? undefined : await readKeySet(store, jwt.jwks_url);
  return [
    ...wrong.map((problem) => `auth: nobody is let in. ${problem}`),
    ...(api_key && domainId === null ? ['auth.api_key: the host has no domain, and so no keys'] : []),
    ...(keySet?.error ? [`auth.jwt: the keys of the issuer could not be read: ${keySet.error}`] : []),
  ];
}
