/** The table `services`: backends that handlers use. Their configs are stored encrypted and never decrypted here. */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../model/permission.js';
import type { ServiceType } from '../model/service-configs.js';
import { nextUpdatedAt, type Store, transaction } from './database.js';
import { insertInto } from './insert.js';
import { namingOwner, type UniqueWrite } from './naming-owner.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';
import { lockSecrets, requireSecrets, secretsOf, setSecretsOf } from './service-secrets.js';
import { visible } from './visibility.js';

/** A row. */
export interface Service {
  readonly id: string;
  readonly name: string;
  readonly service_type: ServiceType;
  /** The config as JSON, encrypted. */
  readonly config_encrypted: string;
  readonly enabled: boolean;
  /** Hosts whose endpoints may use it; none: all. */
  readonly domains: readonly string[];
  /** The stack of files that it belongs to; null: none. */
  readonly stack: string | null;
  /** Host names of machines that have opened the file of a sqlite service; `*`: all, from before that was recorded. */
  readonly file_hosts: readonly string[];
  /** The same of files that its config named before, by their paths. */
  readonly former_files: Readonly<Record<string, readonly string[]>>;
  /** When it was activated; null when it is not. */
  readonly activated_at: Date | null;
  /** Incremented with every change that affects actor hosts, including bindings. */
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The columns that a user sets. */
const USER_COLUMNS = ['name', 'service_type', 'config_encrypted', 'enabled', 'domains'] as const;
export type NewService = Pick<Service, (typeof USER_COLUMNS)[number]> & Partial<Pick<Service, 'stack'>>;
/** The type cannot change: the config would not fit another. */
export type ServiceChanges = Partial<Omit<NewService, 'service_type' | 'stack'>> & {
  /** Names of the secrets that a new config refers to. */
  readonly secrets?: readonly string[];
  /** The paths of the file of a sqlite service that has another one from now on. */
  readonly moved?: FileMove;
};

/** The paths of the file of a sqlite service, before and after a change. */
export interface FileMove {
  readonly from: string;
  readonly to: string;
}

const insertRow = insertInto<Omit<NewService, 'domains'> & { id: string; domains: string }, Service>(
  'services',
  ['id', ...USER_COLUMNS, 'stack'],
);
const insertService = (store: Store, { domains, ...service }: NewService, id: string) =>
  insertRow(store, { ...service, id, domains: arrayLiteral(domains) });

const ORDER = byCreation('services', 'asc', ['name', 'service_type'], 'service');

export async function listServices(store: Store, options: ListOptions = {}): Promise<Page<Service>> {
  return readPage(store, store.knex('services').select('services.*'), ORDER, options);
}

export async function findService(store: Store, id: string): Promise<Service | undefined> {
  return store.knex<Service>('services').where({ id }).first();
}

/** The object storage that has been active longest, of those that are visible. */
export async function activeStorage(store: Store, scope: Scope): Promise<string | undefined> {
  const query = store
    .knex<Service>('services')
    .where({ service_type: 'objstore' })
    .whereNotNull('activated_at')
    .orderBy(['activated_at', 'id']);
  return (await visible(query, 'service', scope).first('id'))?.id;
}

/**
 * @param secrets the names of the secrets that the config refers to
 * @param options what the maker may see: the error about a name names no other service
 * @throws AppError invalid_config when there is no such secret, name_taken
 */
export async function createService(
  store: Store,
  service: NewService,
  secrets: readonly string[],
  { id = randomUUID(), scope }: { readonly id?: string; readonly scope?: Scope } = {},
): Promise<Service> {
  return namingNameOwner(
    store,
    scope,
    () => service.name,
    async () => {
      if (secrets.length === 0) {
        const created = await insertService(store, service, id);
        store.announce('service', created.id);
        return created;
      }
      return transaction(store, async (tx) => {
        requireSecrets(await lockSecrets(tx, secrets), secrets);
        const created = await insertService(tx, service, id);
        await setSecretsOf(tx, created.id, secrets);
        tx.announce('service', created.id);
        return created;
      });
    },
  );
}

/** A service before and after a change. */
export interface UpdatedService {
  readonly before: Service;
  readonly after: Service;
}

/**
 * Changes the fields that `changesOf` returns; disabling a service deactivates it. The row is locked in between.
 * @param mentioned secrets that a changed config may refer to; they are locked first, as where a secret changes
 * @returns undefined when there is no such service
 * @throws AppError invalid_config when there is no such secret, name_taken
 */
export async function updateService(
  store: Store,
  id: string,
  mentioned: readonly string[],
  changesOf: (before: Service) => ServiceChanges,
  scope?: Scope,
): Promise<UpdatedService | undefined> {
  let name = '';
  const update = async (tx: Store): Promise<UpdatedService | undefined> => {
    // Those that it refers to already may stay.
    const existing = await lockSecrets(tx, [...mentioned, ...(await secretsOf(tx, id))]);
    const before = await tx.knex<Service>('services').where({ id }).forUpdate().first();
    if (!before) return undefined;
    const { secrets, moved, ...changes } = changesOf(before);
    if (Object.keys(changes).length === 0) return { before, after: before };
    name = changes.name ?? before.name;
    if (secrets) {
      requireSecrets(existing, secrets);
      await setSecretsOf(tx, id, secrets);
    }
    const [after = before] = await tx
      .knex<Service>('services')
      .where({ id })
      .update({
        ...changes,
        ...(moved && filesAfter(before, moved)),
        ...(changes.enabled === false && { activated_at: null }),
        version: tx.knex.raw('version + 1'),
        updated_at: nextUpdatedAt(tx),
      })
      .returning('*');
    tx.announce('service', id);
    return { before, after };
  };
  return namingNameOwner(
    store,
    scope,
    () => name,
    () => transaction(store, update),
  );
}

/**
 * Deletes a service and its bindings.
 * @returns false when there is no such service
 */
export async function deleteService(store: Store, id: string): Promise<boolean> {
  const deleted = await store.knex('services').where({ id }).delete();
  if (deleted > 0) store.announce('service', id);
  return deleted > 0;
}

function namingNameOwner<T>(
  store: Store,
  scope: Scope,
  name: () => string,
  write: () => Promise<T>,
): Promise<T> {
  const unique: UniqueWrite<Pick<Service, 'id'>> = {
    constraint: 'services_name_unique',
    owner: () =>
      visible(store.knex<Service>('services').where({ name: name() }), 'service', scope).first('id'),
    error: (owner) => ({
      code: 'name_taken',
      message: `The name "${name()}" is taken by ${owner ? `the service ${owner.id}` : 'another service'}`,
      ...(owner && { details: { service_id: owner.id } }),
    }),
  };
  return namingOwner(unique, write);
}

/** Where files were opened is remembered: one that is named again was there. */
function filesAfter({ file_hosts, former_files }: Service, { from, to }: FileMove): object {
  const { [to]: again = [], ...others } = former_files;
  const former = file_hosts.length > 0 ? { ...others, [from]: file_hosts } : others;
  return { file_hosts: again, former_files: JSON.stringify(former) };
}

/** The text of an array of hosts, which need no quotes. */
function arrayLiteral(hosts: readonly string[]): string {
  return `{${hosts.join(',')}}`;
}
