/**
 * Values of columns, and INSERT of one row. The text of the statement is built once: knex's builder would build it for
 * every row, which is the largest cost of a create in this process.
 */
import type { Store } from './database.js';

/**
 * @param columns the columns to set, named like the members of a row; objects are stored as JSON
 * @param returning the columns to read back: those that the database sets
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
    const bindings = columns.map((column) => columnValue(row[column]) ?? null);
    const { rows } = await store.knex.raw<{ rows: Returned[] }>(sql, bindings as never[]);
    const [inserted] = rows;
    if (!inserted) throw new Error(`INSERT INTO ${table} returned no row`);
    return inserted;
  };
}

/** Some members of a row as values of their columns, for an UPDATE. */
export function columnValues(members: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, columnValue(value)]));
}

/**
 * Objects as JSON text: knex would read members of an object value, and pg would convert arrays to PostgreSQL arrays.
 */
function columnValue(value: unknown): unknown {
  const isJson = typeof value === 'object' && value !== null && !(value instanceof Date);
  return isJson ? JSON.stringify(value) : value;
}
