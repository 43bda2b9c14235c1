/** The table `variables`: what handlers find in their environment. Secrets are encrypted, and never decrypted here. */
import { AppError } from '../errors.js';
import { type Store, transaction } from './database.js';
import { touchEndpoints } from './routed-endpoints.js';

/** Where a variable is set. The nearest counts: that of the endpoint before that of its collection and its domain. */
export type VariableScope = 'domain' | 'collection' | 'endpoint';

/** Whose variables they are. */
export interface VariableOwner {
  readonly scope: VariableScope;
  readonly id: string;
}

/** A secret, without its value. */
export interface SecretName {
  readonly name: string;
  readonly updated_at: Date;
  readonly actor: Readonly<Record<string, unknown>> | null;
}

/** A variable in force for an endpoint. */
export interface VariableInForce {
  readonly name: string;
  /** Null for a secret. */
  readonly value: string | null;
  /** Null for a plain variable. */
  readonly value_encrypted: string | null;
  readonly scope: VariableScope;
  /** Of the domain, collection or endpoint. */
  readonly owner_id: string;
  readonly updated_at: Date;
}

const TABLES = { domain: 'domains', collection: 'collections', endpoint: 'endpoints' } as const;

const columnOf = ({ scope }: VariableOwner) => `${scope}_id` as const;
const rowsOf = (store: Store, owner: VariableOwner) =>
  store.knex('variables').where({ [columnOf(owner)]: owner.id });

/** The plain variables; undefined when there is no such owner. */
export async function plainVariables(
  store: Store,
  owner: VariableOwner,
): Promise<Readonly<Record<string, string>> | undefined> {
  if (!(await exists(store, owner))) return undefined;
  const rows = await rowsOf(store, owner)
    .whereNotNull('value')
    .orderBy('name')
    .select<{ name: string; value: string }[]>('name', 'value');
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/**
 * Sets the plain variables, and deletes all others.
 * @returns false when there is no such owner
 * @throws AppError name_is_secret
 */
export async function replaceVariables(
  store: Store,
  owner: VariableOwner,
  variables: Readonly<Record<string, string>>,
): Promise<boolean> {
  const names = Object.keys(variables);
  return changing(store, owner, async (tx) => {
    const [secret] = await rowsOf(tx, owner)
      .whereNotNull('value_encrypted')
      .whereRaw('name = ANY(?)', [names])
      .pluck<string[]>('name');
    if (secret !== undefined) {
      throw new AppError(
        'name_is_secret',
        `${secret} is a secret; delete the secret first, or leave it out here.`,
      );
    }
    await rowsOf(tx, owner).whereNotNull('value').whereRaw('name <> ALL(?)', [names]).delete();
    await upsert(tx, owner, names, Object.values(variables), 'value');
  });
}

/** Sets a secret; a plain variable of this name becomes secret. @returns false when there is no such owner */
export async function putSecret(
  store: Store,
  owner: VariableOwner,
  name: string,
  sealed: string,
): Promise<boolean> {
  return changing(store, owner, (tx) => upsert(tx, owner, [name], [sealed], 'value_encrypted'));
}

/** @returns undefined when there is no such owner, false when there is no such secret */
export async function deleteSecret(
  store: Store,
  owner: VariableOwner,
  name: string,
): Promise<boolean | undefined> {
  let deleted = 0;
  const isOwner = await changing(store, owner, async (tx) => {
    deleted = await rowsOf(tx, owner).where({ name }).whereNotNull('value_encrypted').delete();
  });
  return isOwner ? deleted > 0 : undefined;
}

/** The names of the secrets; undefined when there is no such owner. */
export async function listSecrets(store: Store, owner: VariableOwner): Promise<SecretName[] | undefined> {
  if (!(await exists(store, owner))) return undefined;
  return rowsOf(store, owner)
    .whereNotNull('value_encrypted')
    .orderBy('name')
    .select<SecretName[]>('name', 'updated_at', 'actor');
}

/** All that is in force for an endpoint, by name. */
export async function variablesInForce(store: Store, endpointId: string): Promise<VariableInForce[]> {
  const { rows } = await store.knex.raw<{ rows: VariableInForce[] }>(
    `SELECT DISTINCT ON (variables.name) variables.name, value, value_encrypted, variables.updated_at,
            CASE WHEN variables.endpoint_id IS NOT NULL THEN 'endpoint'
                 WHEN variables.collection_id IS NOT NULL THEN 'collection' ELSE 'domain' END AS scope,
            coalesce(variables.endpoint_id, variables.collection_id, variables.domain_id) AS owner_id
       FROM endpoints LEFT JOIN domains ON domains.host = endpoints.domain
       JOIN variables ON ${appliesTo('domains.id')}
      WHERE endpoints.id = ?
      ORDER BY variables.name, variables.endpoint_id NULLS LAST, variables.collection_id NULLS LAST`,
    [endpointId],
  );
  return rows;
}

/** SQL: a digest of the variables in force for a row of `endpoints`; null when there are none. */
export const environmentDigest = (domainId: string) => `(
  SELECT md5(string_agg(concat_ws(' ', coalesce(variables.endpoint_id, variables.collection_id, variables.domain_id),
                                  variables.name, variables.updated_at), ',' ORDER BY variables.name))
    FROM variables WHERE ${appliesTo(domainId)})`;

/** SQL: whether a variable is set for a row of `endpoints`, its collection or its domain. */
function appliesTo(domainId: string): string {
  return `(variables.endpoint_id = endpoints.id OR variables.collection_id = endpoints.collection_id
           OR variables.domain_id = ${domainId})`;
}

async function exists(store: Store, { scope, id }: VariableOwner): Promise<boolean> {
  return (await store.knex(TABLES[scope]).where({ id }).first('id')) !== undefined;
}

/** An unchanged value keeps its time, so that no handler is restarted for it. An encrypted one is never unchanged. */
async function upsert(
  tx: Store,
  owner: VariableOwner,
  names: readonly string[],
  values: readonly string[],
  column: 'value' | 'value_encrypted',
): Promise<void> {
  await tx.knex.raw(
    `INSERT INTO variables (??, name, ??)
     SELECT ?, given.name, given.value FROM unnest(?::text[], ?::text[]) AS given (name, value)
     ON CONFLICT (??, name) DO UPDATE SET value = excluded.value, value_encrypted = excluded.value_encrypted,
                                          updated_at = clock_timestamp()
       WHERE variables.value IS DISTINCT FROM excluded.value OR excluded.value IS NULL`,
    [columnOf(owner), column, owner.id, [...names], [...values], columnOf(owner)] as never[],
  );
}

/** Changes variables; gateways read the endpoints that they are in force for again. */
async function changing(
  store: Store,
  owner: VariableOwner,
  change: (tx: Store) => Promise<void>,
): Promise<boolean> {
  return transaction(store, async (tx) => {
    // Of two changes of one owner, the second waits for the first.
    const [found] = await tx
      .knex(TABLES[owner.scope])
      .where({ id: owner.id })
      .forUpdate()
      .select<{ id: string }[]>('id');
    if (!found) return false;
    await change(tx);
    await touchEndpoints(tx, await endpointsOf(tx, owner));
    return true;
  });
}

/** Locked in the order of their ids, to avoid deadlocks. */
async function endpointsOf(tx: Store, { scope, id }: VariableOwner): Promise<string[]> {
  const endpoints = tx.knex('endpoints').orderBy('id').forUpdate();
  if (scope === 'domain') endpoints.whereIn('domain', tx.knex('domains').where({ id }).select('host'));
  else endpoints.where({ [scope === 'collection' ? 'collection_id' : 'id']: id });
  return endpoints.pluck<string[]>('id');
}
