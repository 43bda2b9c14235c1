/** The table `domain_keys`: keys of callers of the endpoints of a domain. Only their hashes are stored. */
import { AppError } from '../errors.js';
import type { StoredActor } from '../model/actor.js';
import { type Store, transaction } from './database.js';
import { lockEndpointsOfDomain, touchEndpoints } from './routed-endpoints.js';

/** A row, without what the key is. */
export interface DomainKey {
  readonly id: string;
  readonly label: string;
  /** How it begins. */
  readonly prefix: string;
  readonly expires_at: Date | null;
  readonly created_at: Date;
}

/** A key as gateways read it. */
export interface StoredKey extends Pick<DomainKey, 'id' | 'label' | 'expires_at'> {
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
}

/** Each gateway has them in memory. */
const MAX_KEYS = 1_000;

const SHOWN = ['id', 'label', 'prefix', 'expires_at', 'created_at'] as const;

interface NewKey extends Pick<DomainKey, 'label' | 'prefix' | 'expires_at'> {
  readonly hash: string;
}

/**
 * @returns the key, and the host of its domain; undefined when there is no such domain
 * @throws AppError invalid_input when there are too many
 */
export async function createDomainKey(
  store: Store,
  domainId: string,
  key: NewKey,
  actor: StoredActor,
): Promise<{ readonly key: DomainKey; readonly host: string } | undefined> {
  return changing(store, domainId, async (tx) => {
    const [counted] = await tx
      .knex('domain_keys')
      .where({ domain_id: domainId })
      .count<{ count: string }[]>({ count: '*' });
    if (Number(counted?.count) >= MAX_KEYS)
      throw new AppError('invalid_input', `body: the domain has ${MAX_KEYS} keys; delete some first`);
    const row = { ...key, domain_id: domainId, actor: JSON.stringify(actor) };
    const [created] = await tx
      .knex('domain_keys')
      .insert(row)
      .returning<DomainKey[]>([...SHOWN]);
    return created;
  });
}

/** @returns the host of the domain; undefined when there is no such key */
export async function deleteDomainKey(
  store: Store,
  domainId: string,
  id: string,
): Promise<{ readonly host: string } | undefined> {
  return changing(store, domainId, async (tx) => {
    const deleted = await tx.knex('domain_keys').where({ id, domain_id: domainId }).delete();
    return deleted > 0 ? true : undefined;
  });
}

export async function listDomainKeys(store: Store, domainId: string): Promise<DomainKey[]> {
  return store
    .knex('domain_keys')
    .where({ domain_id: domainId })
    .orderBy(['created_at', 'id'])
    .select<DomainKey[]>([...SHOWN]);
}

/** Those that have not expired. */
export async function keysOfDomain(store: Store, domainId: string): Promise<StoredKey[]> {
  return store
    .knex('domain_keys')
    .where({ domain_id: domainId })
    .whereRaw('(expires_at IS NULL OR expires_at > clock_timestamp())')
    .orderBy('id')
    .select<StoredKey[]>('id', 'label', 'hash', 'expires_at');
}

/** Changes keys of a domain, whose endpoints gateways read again. */
async function changing<T>(
  store: Store,
  domainId: string,
  change: (tx: Store) => Promise<T | undefined>,
): Promise<{ readonly key: T; readonly host: string } | undefined> {
  return transaction(store, async (tx) => {
    const domain = await tx
      .knex<{ id: string; host: string }>('domains')
      .where({ id: domainId })
      .forUpdate()
      .first('id', 'host');
    if (!domain) return undefined;
    const affected = await lockEndpointsOfDomain(tx, domain);
    const key = await change(tx);
    if (key === undefined) return undefined;
    await touchEndpoints(tx, affected);
    return { key, host: domain.host };
  });
}
