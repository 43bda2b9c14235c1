/** The table `variables`: what handlers find in their environment. Secrets are encrypted, and never decrypted here. */
import { AppError } from '../errors.js';
import type { StoredActor } from '../model/actor.js';
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
  readonly actor: StoredActor | null;
}

/** The value of a variable or of a secret. */
export interface SealableValue {
  /** Null for a secret. */
  readonly value: string | null;
  /** Null for a plain variable. */
  readonly value_encrypted: string | null;
}

/** A variable in force for an endpoint. */
export interface VariableInForce extends SealableValue {
  readonly name: string;
  readonly scope: VariableScope;
  /** Id of the domain, collection or endpoint. */
  readonly owner_id: string;
  readonly updated_at: Date;
}

/** What one owner may have together, and what may be in force for one endpoint, as `NAME=value`. */
export const MAX_VARIABLE_BYTES = 256 * 1024;

/** SQL: the bytes of a variable. Processes that are not upgraded yet do not write them. */
const BYTES = `coalesce(variables.bytes, octet_length(variables.name) + 1
  + coalesce(octet_length(variables.value), octet_length(variables.value_encrypted) * 3 / 4))`;

/** SQL: endpoints with `domain_id`, that of their collection where they have one. */
const ENDPOINTS = `(
  SELECT endpoints.id, endpoints.name, endpoints.collection_id, coalesce(collections.domain_id, domains.id) AS domain_id
    FROM endpoints LEFT JOIN collections ON collections.id = endpoints.collection_id
    LEFT JOIN domains ON domains.host = endpoints.domain) AS endpoints`;

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
 * @returns the endpoints that they are in force for; undefined when there is no such owner
 * @throws AppError name_is_secret, invalid_input when they are too many
 */
export async function replaceVariables(
  store: Store,
  owner: VariableOwner,
  variables: Readonly<Record<string, string>>,
  actor: StoredActor,
): Promise<string[] | undefined> {
  const names = Object.keys(variables);
  return changing(store, owner, async (tx) => {
    await requireNoSecrets(tx, owner, names);
    await rowsOf(tx, owner).whereNotNull('value').whereRaw('name <> ALL(?)', [names]).delete();
    await setPlain(tx, owner, variables, actor);
  });
}

/**
 * Sets some plain variables, and deletes those that are null; the others stay.
 * @returns the endpoints that they are in force for; undefined when there is no such owner
 * @throws AppError name_is_secret, invalid_input when they are too many
 */
export async function changeVariables(
  store: Store,
  owner: VariableOwner,
  changes: Readonly<Record<string, string | null>>,
  actor: StoredActor,
): Promise<string[] | undefined> {
  const names = Object.keys(changes);
  const set = Object.entries(changes).filter((change): change is [string, string] => change[1] !== null);
  const unset = names.filter((name) => changes[name] === null);
  return changing(store, owner, async (tx) => {
    await requireNoSecrets(tx, owner, names);
    await rowsOf(tx, owner).whereNotNull('value').whereRaw('name = ANY(?)', [unset]).delete();
    await setPlain(tx, owner, Object.fromEntries(set), actor);
  });
}

/**
 * Sets a secret; a plain variable of this name becomes secret.
 * @returns the endpoints that they are in force for; undefined when there is no such owner
 * @throws AppError invalid_input when there are too many
 */
export async function putSecret(
  store: Store,
  owner: VariableOwner,
  { name, value, seal }: { readonly name: string; readonly value: string; seal(text: string): string },
  actor: StoredActor,
): Promise<string[] | undefined> {
  const row = { name, value: seal(value), bytes: variableBytes(name, value) };
  return changing(store, owner, (tx) => upsert(tx, owner, [row], 'value_encrypted', actor));
}

/** @returns those endpoints; undefined when there is no such owner, `none` when there is no such secret */
export async function deleteSecret(
  store: Store,
  owner: VariableOwner,
  name: string,
): Promise<string[] | 'none' | undefined> {
  let deleted = 0;
  const affected = await changing(store, owner, async (tx) => {
    deleted = await rowsOf(tx, owner).where({ name }).whereNotNull('value_encrypted').delete();
  });
  return affected && deleted === 0 ? 'none' : affected;
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
       FROM ${ENDPOINTS} JOIN variables ON ${appliesTo('endpoints.domain_id')}
      WHERE endpoints.id = ?
      ORDER BY variables.name, variables.endpoint_id NULLS LAST, variables.collection_id NULLS LAST`,
    [endpointId],
  );
  return rows;
}

/** A variable of a domain, collection or endpoint. */
export interface OwnedVariable extends SealableValue {
  readonly owner_id: string;
  readonly name: string;
}

/** All variables and secrets of some domains, collections and endpoints. */
export async function variablesOfOwners(store: Store, ids: readonly string[]): Promise<OwnedVariable[]> {
  const { rows } = await store.knex.raw<{ rows: OwnedVariable[] }>(
    `SELECT coalesce(endpoint_id, collection_id, domain_id) AS owner_id, name, value, value_encrypted FROM variables
      WHERE endpoint_id = ANY(?) OR collection_id = ANY(?) OR domain_id = ANY(?)`,
    [[...ids], [...ids], [...ids]] as never[],
  );
  return rows;
}

/**
 * SQL: a digest of the variables in force for a row of `endpoints`; null when there are none.
 * @param domainId of its collection, or of its host when it has none
 */
export const environmentDigest = (domainId: string) => `(
  SELECT md5(string_agg(concat_ws(' ', coalesce(variables.endpoint_id, variables.collection_id, variables.domain_id),
                                  variables.name, variables.updated_at), ','
                        ORDER BY variables.name, variables.endpoint_id, variables.collection_id))
    FROM variables WHERE ${appliesTo(domainId)})`;

/** SQL: whether a variable is set for a row of `endpoints`, its collection or its domain. */
function appliesTo(domainId: string): string {
  return `(variables.endpoint_id = endpoints.id OR variables.collection_id = endpoints.collection_id
           OR variables.domain_id = ${domainId})`;
}

async function exists(store: Store, { scope, id }: VariableOwner): Promise<boolean> {
  return (await store.knex(TABLES[scope]).where({ id }).first('id')) !== undefined;
}

interface VariableRow {
  readonly name: string;
  /** Encrypted, of a secret. */
  readonly value: string;
  readonly bytes: number;
}

/** What a variable counts as: `NAME=value`. */
export function variableBytes(name: string, value: string): number {
  return Buffer.byteLength(`${name}=${value}`);
}

/** @throws AppError name_is_secret */
async function requireNoSecrets(tx: Store, owner: VariableOwner, names: readonly string[]): Promise<void> {
  const [secret] = await rowsOf(tx, owner)
    .whereNotNull('value_encrypted')
    .whereRaw('name = ANY(?)', [[...names]])
    .pluck<string[]>('name');
  if (secret === undefined) return;
  throw new AppError(
    'name_is_secret',
    `${secret} is a secret; delete the secret first, or leave it out here.`,
  );
}

function setPlain(
  tx: Store,
  owner: VariableOwner,
  variables: Readonly<Record<string, string>>,
  actor: StoredActor,
): Promise<void> {
  const rows = Object.entries(variables).map(([name, value]) => ({
    name,
    value,
    bytes: variableBytes(name, value),
  }));
  return upsert(tx, owner, rows, 'value', actor);
}

/** An unchanged value keeps its time, so that no handler is restarted for it. An encrypted one is never unchanged. */
async function upsert(
  tx: Store,
  owner: VariableOwner,
  rows: readonly VariableRow[],
  column: 'value' | 'value_encrypted',
  actor: StoredActor,
): Promise<void> {
  await tx.knex.raw(
    `INSERT INTO variables (??, name, ??, bytes, actor)
     SELECT ?, given.name, given.value, given.bytes, ?::jsonb
       FROM unnest(?::text[], ?::text[], ?::integer[]) AS given (name, value, bytes)
     ON CONFLICT (??, name) DO UPDATE SET value = excluded.value, value_encrypted = excluded.value_encrypted,
                                          bytes = excluded.bytes, actor = excluded.actor, updated_at = clock_timestamp()
       WHERE variables.value IS DISTINCT FROM excluded.value OR excluded.value IS NULL`,
    [
      ...[
        columnOf(owner),
        column,
        owner.id,
        JSON.stringify(actor),
        rows.map(({ name }) => name),
        rows.map(({ value }) => value),
      ],
      ...[rows.map(({ bytes }) => bytes), columnOf(owner)],
    ] as never[],
  );
}

/**
 * Changes variables; gateways read the endpoints that they are in force for again.
 * @returns these; undefined when there is no such owner
 * @throws AppError invalid_input when there are more bytes than before, and more than there may be
 */
async function changing(
  store: Store,
  owner: VariableOwner,
  change: (tx: Store) => Promise<void>,
): Promise<string[] | undefined> {
  return transaction(store, async (tx) => {
    // The second of two changes of one owner waits for the first.
    const [row] = await tx
      .knex(TABLES[owner.scope])
      .where({ id: owner.id })
      .forUpdate()
      .select<{ id: string }[]>('id');
    if (!row) return undefined;
    // Locked before they are looked at: their other owners may be changed at the same time.
    const affected = await endpointsOf(tx, owner);
    const [bytesBefore, fullBefore] = [await bytesOfOwner(tx, owner), await fullEndpoints(tx, affected)];
    await change(tx);
    const bytes = await bytesOfOwner(tx, owner);
    if (bytes > Math.max(MAX_VARIABLE_BYTES, bytesBefore))
      throw tooLarge(`the variables and secrets of the ${owner.scope} together`, bytes);
    const sizesBefore = new Map(fullBefore.map((full) => [full.id, full.bytes]));
    const grown = (await fullEndpoints(tx, affected)).find(
      (full) => full.bytes > (sizesBefore.get(full.id) ?? MAX_VARIABLE_BYTES),
    );
    if (grown) {
      const which = `the endpoint "${grown.name}" (${grown.id})`;
      throw tooLarge(`what is in force for ${which} from its domain, its collection and itself`, grown.bytes);
    }
    await touchEndpoints(tx, affected);
    return affected;
  });
}

function tooLarge(what: string, bytes: number): AppError {
  const limit = `${what} would have ${bytes} bytes with their names; at most ${MAX_VARIABLE_BYTES} together`;
  return new AppError('invalid_input', `body: ${limit}. Delete some first, or keep large values elsewhere.`);
}

async function bytesOfOwner(tx: Store, owner: VariableOwner): Promise<number> {
  const [row] = await rowsOf(tx, owner).select<{ bytes: number }[]>(
    tx.knex.raw(`coalesce(sum(${BYTES}), 0)::integer AS bytes`),
  );
  return row?.bytes ?? 0;
}

type FullEndpoint = { readonly id: string; readonly name: string; readonly bytes: number };

/** Those of some endpoints for which more is in force than there may be. */
async function fullEndpoints(tx: Store, endpointIds: readonly string[]): Promise<FullEndpoint[]> {
  // Only where the sum of all is too large it matters which of them are hidden by nearer ones.
  const { rows } = await tx.knex.raw<{ rows: FullEndpoint[] }>(
    `WITH affected AS (SELECT * FROM ${ENDPOINTS} WHERE id = ANY(?)),
     sums AS (
       SELECT coalesce(endpoint_id, collection_id, domain_id) AS owner_id, sum(${BYTES}) AS bytes FROM variables
        WHERE endpoint_id = ANY(?) OR collection_id = ANY(ARRAY(SELECT collection_id FROM affected))
           OR domain_id = ANY(ARRAY(SELECT domain_id FROM affected))
        GROUP BY owner_id)
     SELECT endpoints.id, endpoints.name, in_force.bytes
       FROM affected AS endpoints
       JOIN LATERAL (SELECT sum(bytes) AS bytes FROM sums
                      WHERE owner_id IN (endpoints.id, endpoints.collection_id, endpoints.domain_id)) AS all_owners
         ON all_owners.bytes > ?
       JOIN LATERAL (
              SELECT sum(bytes)::integer AS bytes FROM (
                SELECT DISTINCT ON (variables.name) ${BYTES} AS bytes
                  FROM variables WHERE ${appliesTo('endpoints.domain_id')}
                 ORDER BY variables.name, variables.endpoint_id NULLS LAST, variables.collection_id NULLS LAST) nearest) AS in_force
         ON in_force.bytes > ?`,
    [[...endpointIds], [...endpointIds], MAX_VARIABLE_BYTES, MAX_VARIABLE_BYTES] as never[],
  );
  return rows;
}

/** Locked in the order of their ids, to avoid deadlocks. */
async function endpointsOf(tx: Store, { scope, id }: VariableOwner): Promise<string[]> {
  const endpoints = tx.knex('endpoints').orderBy('id').forUpdate();
  if (scope === 'domain') endpoints.whereRaw(`id IN (SELECT id FROM ${ENDPOINTS} WHERE domain_id = ?)`, [id]);
  else endpoints.where({ [scope === 'collection' ? 'collection_id' : 'id']: id });
  return endpoints.pluck<string[]>('id');
}
