/** The table `known_credentials`: keys and tokens that were right, by digests of them and of the networks. */
import type { Store } from './database.js';

const KEPT_DAYS = 30;

export async function isKnownCredential({ knex }: Store, key: string): Promise<boolean> {
  return (await knex('known_credentials').where({ key }).first('key')) !== undefined;
}

export async function rememberCredential({ knex }: Store, key: string): Promise<void> {
  await knex.raw(
    `INSERT INTO known_credentials (key) VALUES (?)
     ON CONFLICT (key) DO UPDATE SET used_at = clock_timestamp()`,
    [key],
  );
}

/** Forgets those that were not used for long. */
export async function forgetKnownCredentials({ knex }: Store): Promise<void> {
  await knex('known_credentials')
    .whereRaw(`used_at < clock_timestamp() - ? * interval '1 day'`, [KEPT_DAYS])
    .delete();
}
