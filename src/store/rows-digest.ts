/** A digest of all rows of a table and their versions, for whoever keeps it of those that it knows. */
import type { Store } from './database.js';

/** The number of rows, and a sum over them. */
export interface RowsDigest {
  readonly count: number;
  readonly sum: number;
}

/** The first digits of an id, which are random. */
const DIGITS = 6;
/** A prime, so small that products stay exact in JavaScript. */
const MODULUS = 2_147_483_647;

/** The part of a row in the sum. */
export function digestOf(id: string, version: number): number {
  return (Number.parseInt(id.slice(0, DIGITS), 16) * version) % MODULUS;
}

/** Adds to a sum, or takes away from it. */
export function addDigest(sum: number, part: number): number {
  return (sum + part + MODULUS) % MODULUS;
}

/** That of the rows as they are now. */
export async function readRowsDigest(store: Store, table: 'endpoints' | 'services'): Promise<RowsDigest> {
  const { rows } = await store.knex.raw<{ rows: [RowsDigest] }>(
    `SELECT count(*)::integer AS count,
            (coalesce(sum(('x' || left(id::text, ${DIGITS}))::bit(${DIGITS * 4})::integer::bigint * version), 0)
              % ${MODULUS})::integer AS sum
       FROM ??`,
    [table],
  );
  return rows[0];
}
