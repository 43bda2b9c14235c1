/**
 * The table `installation_secrets`: secrets that configs of services refer to by name. They are encrypted, and never
 * decrypted here.
 */
import { AppError } from '../errors.js';
import type { StoredActor } from '../model/actor.js';
import { type Store, transaction } from './database.js';
import { lockServicesUsing, type UsingService } from './service-secrets.js';
import type { SecretName } from './variables.js';

/** So many services are named when a secret cannot be deleted. */
const NAMED_SERVICES = 10;

/** All secrets, without their values. */
export async function installationSecrets(store: Store): Promise<SecretName[]> {
  return store
    .knex('installation_secrets')
    .orderBy('name')
    .select<SecretName[]>('name', 'updated_at', 'actor');
}

/** The encrypted values of those of these secrets that there are, by name. */
export async function sealedInstallationSecrets(
  store: Store,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await store
    .knex('installation_secrets')
    .whereIn('name', [...names])
    .select<{ name: string; value_encrypted: string }[]>('name', 'value_encrypted');
  return new Map(rows.map(({ name, value_encrypted }) => [name, value_encrypted]));
}

/** The names of secrets that were set after a moment, or at it. */
export async function secretsChangedSince(store: Store, moment: Date): Promise<ReadonlySet<string>> {
  const names = await store
    .knex('installation_secrets')
    .where('updated_at', '>=', moment)
    .pluck<string[]>('name');
  return new Set(names);
}

/**
 * Sets a secret. Actor hosts read the services that use it again.
 * @returns those services, with their new versions
 */
export async function putInstallationSecret(
  store: Store,
  name: string,
  sealed: string,
  actor: StoredActor,
): Promise<UsingService[]> {
  return transaction(store, async (tx) => {
    // A config that begins to refer to it waits for this, or is among the services.
    await lockForChange(tx, name);
    await tx.knex.raw(
      `INSERT INTO installation_secrets (name, value_encrypted, actor) VALUES (?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET value_encrypted = excluded.value_encrypted, actor = excluded.actor,
                                        updated_at = clock_timestamp()`,
      [name, sealed, JSON.stringify(actor)],
    );
    const using = await lockServicesUsing(tx, name);
    const ids = using.map(({ id }) => id);
    await tx
      .knex('services')
      .whereIn('id', ids)
      .update({ version: tx.knex.raw('version + 1') });
    for (const id of ids) tx.announce('service', id);
    return using.map((service) => ({ ...service, version: service.version + 1 }));
  });
}

/**
 * @returns false when there is no such secret
 * @throws AppError secret_in_use naming the services that refer to it
 */
export async function deleteInstallationSecret(store: Store, name: string): Promise<boolean> {
  return transaction(store, async (tx) => {
    await lockForChange(tx, name);
    const using = await lockServicesUsing(tx, name);
    if (using.length > 0) throw inUse(name, using);
    return (await tx.knex('installation_secrets').where({ name }).delete()) > 0;
  });
}

/** Waits for changes of configs that refer to it, and keeps others waiting. */
async function lockForChange(tx: Store, name: string): Promise<void> {
  await tx.knex('installation_secrets').where({ name }).forUpdate().first('name');
}

function inUse(name: string, using: readonly UsingService[]): AppError {
  const services = using.map((service) => ({ id: service.id, name: service.name }));
  const named = services.slice(0, NAMED_SERVICES).map((service) => `"${service.name}"`);
  const more = services.length > named.length ? ` and ${services.length - named.length} more` : '';
  const message = `The secret ${name} is used by the services ${named.join(', ')}${more}; change their configs first.`;
  return new AppError('secret_in_use', message, { details: { services } });
}
