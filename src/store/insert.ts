/**
 * INSERT of one row. The text of the statement is made once; knex's builder would make it again for every row, which
 * costs a create more time than anything else in this process.
 */
import type { Store } from './database.js';

/**
 * @param columns the columns that get values, with the names of the members of a row
 * @param returning the columns to read back: those the database gives values to
 */
export function insertInto<Row extends object, Returned>(
  table: string,
  columns: readonly (keyof Row & string)[],
  returning: readonly (keyof Returned & string)[] | '*' = '*',
): (store: Store, row: Row) => Promise<Returned> {
  const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) RETURNING ${
    returning === '*' ? '*' : returning.join(', ')
  }`;
  return async (store, row) => {
    const bindings = columns.map((column) => row[column]);
    const { rows } = await store.knex.raw<{ rows: Returned[] }>(sql, bindings as never[]);
    const [inserted] = rows;
    if (!inserted) throw new Error(`INSERT INTO ${table} returned no row`);
    return inserted;
  };
}
