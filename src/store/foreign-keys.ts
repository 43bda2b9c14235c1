/** Failed writes because of a row that does not exist. */
import pg from 'pg';

/** The name of the foreign key a failed write ran into, if that is why it failed. */
export function violatedForeignKey(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError && error.code === '23503') return error.constraint;
  return undefined;
}
