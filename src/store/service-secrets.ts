/**
 * The table `service_secrets`: which secrets of the installation the configs of services refer to. Secrets are locked
 * before services, by all that change either.
 */
import { AppError } from '../errors.js';
import type { Store } from './database.js';

/** A service whose config refers to a secret. */
export interface UsingService {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly activated_at: Date | null;
}

/**
 * Locks secrets until the end of the transaction, so that they are neither changed nor deleted.
 * @returns those that exist
 */
export async function lockSecrets(tx: Store, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const { rows } = await tx.knex.raw<{ rows: { name: string }[] }>(
    'SELECT name FROM installation_secrets WHERE name = ANY(?) ORDER BY name FOR KEY SHARE',
    [[...names]] as never[],
  );
  return new Set(rows.map(({ name }) => name));
}

/** @throws AppError invalid_config when a secret does not exist */
export function requireSecrets(existing: ReadonlySet<string>, names: readonly string[]): void {
  const missing = names.find((name) => !existing.has(name));
  if (missing === undefined) return;
  const advice = `set it with PUT /api/secrets/${missing} first, or correct the name`;
  throw new AppError('invalid_config', `config: there is no secret "${missing}"; ${advice}`);
}

/** Replaces the secrets that the config of a service refers to; they are locked. */
export async function setSecretsOf(tx: Store, serviceId: string, names: readonly string[]): Promise<void> {
  await tx.knex('service_secrets').where({ service_id: serviceId }).delete();
  if (names.length === 0) return;
  await tx
    .knex('service_secrets')
    .insert(names.map((name) => ({ service_id: serviceId, secret_name: name })));
}

/** The services that use a secret, which is locked; they are locked too, in the order of their ids. */
export async function lockServicesUsing(tx: Store, name: string): Promise<UsingService[]> {
  return tx
    .knex('services')
    .whereIn('id', tx.knex('service_secrets').where({ secret_name: name }).select('service_id'))
    .orderBy('id')
    .forUpdate()
    .select<UsingService[]>('id', 'name', 'version', 'activated_at');
}

/** The secrets that a service refers to. */
export async function secretsOf(tx: Store, serviceId: string): Promise<string[]> {
  return tx.knex('service_secrets').where({ service_id: serviceId }).pluck<string[]>('secret_name');
}
