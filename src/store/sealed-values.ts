/** All columns with encrypted values, for a change of the key: values are compared as they are, and never decrypted. */
import type { Store } from './database.js';

/** A column with encrypted values. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
}

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'services', column: 'config_encrypted' },
  { table: 'installation_secrets', column: 'value_encrypted' },
  { table: 'variables', column: 'value_encrypted' },
  { table: 'alerts', column: 'url_encrypted' },
  { table: 'alerts', column: 'secret_encrypted' },
  { table: 'apply_undo', column: 'sealed' },
  { table: 'certificates', column: 'key_encrypted' },
  { table: 'acme_accounts', column: 'key_encrypted' },
  { table: 'acme_challenges', column: 'key_encrypted' },
];

/** A value, and the same value encrypted again. */
export interface ResealedValue {
  readonly before: string;
  readonly after: string;
}

/** How many values do not begin with a prefix. */
export async function countSealedOtherwise(store: Store, prefix: string): Promise<number> {
  const counts = await Promise.all(
    SEALED_COLUMNS.map(async ({ table, column }) => {
      const { rows } = await store.knex.raw<{ rows: { count: number }[] }>(
        'SELECT count(*) AS count FROM ?? WHERE NOT starts_with(??, ?)',
        [table, column, prefix],
      );
      return rows[0]?.count ?? 0;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Some values of a column that do not begin with a prefix, in their order, from the one after `last`. */
export async function sealedOtherwise(
  store: Store,
  { table, column }: SealedColumn,
  prefix: string,
  last: string,
  limit: number,
): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { value: string }[] }>(
    `SELECT ?? AS value FROM ?? WHERE NOT starts_with(??, ?) AND ?? COLLATE "C" > ? ORDER BY ?? COLLATE "C" LIMIT ?`,
    [column, table, column, prefix, column, last, column, limit],
  );
  return rows.map(({ value }) => value);
}

/**
 * Replaces values of a column, except for those that have been changed meanwhile. Nobody has to read the rows again:
 * they mean what they did before.
 * @returns how many were replaced
 */
export async function replaceSealed(
  store: Store,
  { table, column }: SealedColumn,
  resealed: readonly ResealedValue[],
): Promise<number> {
  // Equal texts are the same encryption: each begins with random bytes.
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `UPDATE ?? SET ?? = resealed.after FROM unnest(?::text[], ?::text[]) AS resealed (before, after)
      WHERE ??.?? = resealed.before`,
    [
      ...[table, column],
      ...[resealed.map(({ before }) => before), resealed.map(({ after }) => after)],
      ...[table, column],
    ] as never[],
  );
  return rowCount;
}
