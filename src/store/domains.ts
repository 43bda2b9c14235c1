/** The table `domains`: hostnames, each with a switch for all its endpoints. */

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Policies } from '../model/policies/policies.js';
import { requireServicesForDomain } from './bindings.js';
import { nextUpdatedAt, type Store, transaction } from './database.js';
import { columnValues, insertInto } from './insert.js';
import { namingOwner, type UniqueWrite } from './naming-owner.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';
import {
  deleteEndpoints,
  lockEndpointsOfDomain,
  namingRouteOwner,
  touchEndpoints,
} from './routed-endpoints.js';

/** An order of a certificate from an ACME server (`acme.ts`). Times are ISO 8601. */
export interface CertificateOrder {
  readonly state: 'queued' | 'ordering' | 'issued' | 'failed';
  /** The error of the last try that has failed, while no later one was successful. */
  readonly error: string | null;
  readonly tried_at: string | null;
  /** When an order that has failed is tried next; null: it has not failed. */
  readonly next_try_at: string | null;
}

/** A row. */
export interface Domain {
  readonly id: string;
  readonly name: string;
  /** In lower case. */
  readonly host: string;
  readonly description: string | null;
  readonly policies: Policies | null;
  readonly enabled: boolean;
  /** The stack of files that it belongs to; null: none. */
  readonly stack: string | null;
  /** When its certificate for TLS expires; null: it has none. */
  readonly certificate_expires_at: Date | null;
  /** What became of the last order of a certificate; null: none was ordered, or a user has set one since. */
  readonly certificate_order: CertificateOrder | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The columns that a user sets. */
const USER_COLUMNS = ['name', 'host', 'description', 'policies', 'enabled'] as const;
export type NewDomain = Pick<Domain, Exclude<(typeof USER_COLUMNS)[number], 'policies'>> &
  Partial<Pick<Domain, 'policies' | 'stack'>>;

/** Also from other tables: when the certificate expires, and how it is ordered. */
const COLUMNS = `domains.*,
  (SELECT expires_at FROM certificates WHERE domain_id = domains.id) AS certificate_expires_at,
  (SELECT jsonb_build_object(
            'state', state, 'error', error, 'tried_at', ${isoTime('tried_at')},
            'next_try_at', CASE WHEN state = 'failed' THEN ${isoTime('next_try_at')} END)
     FROM acme_orders
    WHERE domain_id = domains.id AND NOT EXISTS (
      SELECT FROM certificates WHERE domain_id = domains.id AND ordered_from IS NULL)) AS certificate_order`;

/** SQL: a time in JSON. */
function isoTime(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

type Inserted = Omit<Domain, 'certificate_expires_at' | 'certificate_order'>;
const insertRow = insertInto<NewDomain & Pick<Domain, 'id'>, Inserted>('domains', [
  'id',
  ...USER_COLUMNS,
  'stack',
]);

async function insertDomain(store: Store, domain: NewDomain & Pick<Domain, 'id'>): Promise<Domain> {
  return { ...(await insertRow(store, domain)), certificate_expires_at: null, certificate_order: null };
}

const ORDER = byCreation('domains', 'asc', ['name', 'host', 'description'], 'domain');

export async function listDomains(store: Store, options: ListOptions = {}): Promise<Page<Domain>> {
  return readPage(store, store.knex('domains').select(store.knex.raw(COLUMNS)), ORDER, options);
}

/** The bytes of policies that a list would have in memory. */
export async function policyBytesOfDomains(store: Store, options: ListOptions = {}): Promise<number> {
  const query = store
    .knex('domains')
    .select(store.knex.raw('coalesce(octet_length(domains.policies::text), 0) AS bytes'));
  const { rows } = await readPage<{ bytes: number }>(store, query, ORDER, options);
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}

export async function findDomain(store: Store, id: string): Promise<Domain | undefined> {
  return readDomain(store, { id });
}

function readDomain({ knex }: Store, where: { id: string } | { host: string }): Promise<Domain | undefined> {
  return knex<Domain>('domains').where(where).first<Domain | undefined>(knex.raw(COLUMNS));
}

/** The domain of a host. @param host in lower case */
export async function findDomainOfHost(store: Store, host: string): Promise<Domain | undefined> {
  return readDomain(store, { host });
}

/** Whether a domain has this host. */
export async function isHostOfDomain(store: Store, host: string): Promise<boolean> {
  return (await store.knex<Domain>('domains').where({ host }).first('id')) !== undefined;
}

/** Whether endpoints may answer requests for a host: it has a domain or endpoints, or there are some for all hosts. */
export async function servesHost({ knex }: Store, host: string): Promise<boolean> {
  const { rows } = await knex.raw<{ rows: { serves: boolean }[] }>(
    `SELECT EXISTS (SELECT FROM domains WHERE host = :host)
         OR EXISTS (SELECT FROM endpoints WHERE domain IN ('*', :host)) AS serves`,
    { host },
  );
  return rows[0]?.serves === true;
}

/** Whether endpoints are of a host that has no domain: only those see them who see everything. */
export async function hasHiddenEndpoints({ knex }: Store, host: string): Promise<boolean> {
  const { rows } = await knex.raw<{ rows: { has: boolean }[] }>(
    `SELECT EXISTS (SELECT FROM endpoints WHERE domain = :host)
        AND NOT EXISTS (SELECT FROM domains WHERE host = :host) AS has`,
    { host },
  );
  return rows[0]?.has === true;
}

/** @throws AppError host_taken */
export async function createDomain(
  store: Store,
  added: NewDomain,
  id: string = randomUUID(),
): Promise<Domain> {
  const domain = { ...added, id };
  return namingHostOwner(store, domain.host, async () => {
    // An enabled domain without policies affects no other row, so one statement suffices.
    if (domain.enabled && !domain.policies) return insertDomain(store, domain);
    return transaction(store, async (tx) => {
      const created = await insertDomain(tx, domain);
      // Endpoints may refer to the host before the domain exists.
      await touchEndpoints(tx, await lockEndpointsOfDomain(tx, created));
      return created;
    });
  });
}

/**
 * Changes the given fields. A new host is copied to the endpoints that have the old one, and to the alerts about it.
 * @returns undefined when there is no such domain
 * @throws AppError host_taken, route_taken or service_not_for_domain
 */
export async function updateDomain(
  store: Store,
  id: string,
  changes: Partial<Omit<NewDomain, 'stack'>>,
): Promise<Domain | undefined> {
  const update = () =>
    transaction(store, async (tx) => {
      await tx.knex('domains').where({ id }).forUpdate().first('id');
      const before = await findDomain(tx, id);
      if (!before || Object.keys(changes).length === 0) return before;
      const [after] = await tx
        .knex<Domain>('domains')
        .where({ id })
        .update({ ...columnValues(changes), updated_at: nextUpdatedAt(tx) })
        .returning<Domain[]>(tx.knex.raw(COLUMNS) as never);
      if (!after) return undefined;
      const hasNewPolicies = !isDeepStrictEqual(after.policies, before.policies);
      if (after.host === before.host && after.enabled === before.enabled && !hasNewPolicies) return after;
      // Includes endpoints that referred to the new host before, in one call, because several endpoints are locked in
      // order.
      const affected = await lockEndpointsOfDomain(tx, before, after.host);
      if (after.host !== before.host) {
        const moved = tx.knex('endpoints').where({ domain: before.host });
        await requireServicesForDomain(tx, await moved.clone().pluck<string[]>('id'), after.host);
        await moved.update({ domain: after.host, updated_at: nextUpdatedAt(tx) });
        if (before.certificate_expires_at) tx.announce('certificate', id);
        await tx
          .knex('alerts')
          .where({ scope: JSON.stringify({ domain: before.host }) })
          .update({ scope: JSON.stringify({ domain: after.host }), updated_at: nextUpdatedAt(tx) });
      }
      await touchEndpoints(tx, affected);
      return after;
    });
  const { host } = changes;
  if (host === undefined) return update();
  return namingHostOwner(store, host, () => namingRouteOwner(store, { renamedDomain: id, host }, update));
}

/**
 * Deletes a domain, its collections, the endpoints in them and those attached by its hostname.
 * @returns false when there is no such domain
 */
export async function deleteDomain(store: Store, id: string): Promise<boolean> {
  return transaction(store, async (tx) => {
    await tx.knex('domains').where({ id }).forUpdate().first('id');
    const domain = await findDomain(tx, id);
    if (!domain) return false;
    // Locked, so that no endpoint is added to a collection before the deletion.
    await tx.knex('collections').where({ domain_id: id }).orderBy('id').forUpdate().select('id');
    await deleteEndpoints(tx, await lockEndpointsOfDomain(tx, domain));
    await tx.knex('domains').where({ id }).delete();
    if (domain.certificate_expires_at) tx.announce('certificate', id);
    return true;
  });
}

function namingHostOwner<T>(store: Store, host: string, write: () => Promise<T>): Promise<T> {
  const unique: UniqueWrite<Domain> = {
    constraint: 'domains_host_unique',
    owner: () => store.knex<Domain>('domains').where({ host }).first(),
    error: (owner) => ({
      code: 'host_taken',
      message: `The host "${host}" is taken${owner ? ` by the domain "${owner.name}" (${owner.id})` : ''}`,
      ...(owner && { details: { domain_id: owner.id } }),
    }),
  };
  return namingOwner(unique, write);
}
