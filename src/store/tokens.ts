/** The table `tokens`: credentials of programs. Only digests of tokens are stored. */
import type { Permission } from '../model/permission.js';
import type { Store } from './database.js';
import type { User } from './users.js';

/** A row. */
export interface Token {
  readonly id: string;
  readonly hash: string;
  readonly name: string;
  /** Null: made with API_KEY. */
  readonly user_id: string | null;
  /** The digest of the API_KEY that it was made with. */
  readonly key_hash: string | null;
  readonly permissions: readonly Permission[];
  /** Hosts; none: all that who made it may see. */
  readonly domains: readonly string[];
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
}

export type NewToken = Omit<Token, 'id' | 'created_at' | 'last_used_at'>;

/** Uses within this time are written once. */
const USED_EVERY_SECONDS = 30;

export async function createToken({ knex }: Store, token: NewToken): Promise<Token> {
  const [created] = await knex<Token>('tokens')
    .insert(token as never)
    .returning('*');
  if (!created) throw new Error('INSERT INTO tokens returned no row');
  return created;
}

/** @param owner whose; undefined: of everybody */
export async function listTokens(
  { knex }: Store,
  owner: { readonly user_id: string | null } | undefined,
): Promise<Token[]> {
  return knex<Token>('tokens')
    .where(owner ?? {})
    .orderBy(['created_at', 'id']);
}

/** @returns false when there is no such token */
export async function deleteToken(
  { knex }: Store,
  id: string,
  owner: { readonly user_id: string | null } | undefined,
): Promise<boolean> {
  return (
    (await knex('tokens')
      .where({ id, ...owner })
      .delete()) > 0
  );
}

/** A token, and who made it. */
export interface ValidToken {
  readonly token: Token;
  readonly user: User | null;
}

/** A valid token and who made it. @param isUse notes that it was used */
export async function useToken(store: Store, hash: string, isUse = true): Promise<ValidToken | undefined> {
  const found = await findValidToken(store, { hash });
  if (isUse && found?.stale)
    await store
      .knex('tokens')
      .where({ hash })
      .update({ last_used_at: store.knex.raw('clock_timestamp()') as never });
  return found;
}

/** A token that has not expired. It is not used with that. */
export async function findValidToken(
  { knex }: Store,
  by: { readonly hash: string } | { readonly id: string },
): Promise<(ValidToken & { readonly stale: boolean }) | undefined> {
  const [[column, value]] = Object.entries(by) as [[string, string]];
  const { rows } = await knex.raw<{ rows: (ValidToken & { stale: boolean })[] }>(
    `SELECT to_jsonb(tokens) AS token, CASE WHEN users.id IS NULL THEN NULL ELSE to_jsonb(users) END AS user,
            last_used_at IS NULL
              OR last_used_at < clock_timestamp() - ${USED_EVERY_SECONDS} * interval '1 second' AS stale
       FROM tokens LEFT JOIN users ON users.id = tokens.user_id
      WHERE tokens.?? = ? AND (expires_at IS NULL OR expires_at > clock_timestamp())`,
    [column, value],
  );
  return rows[0];
}
