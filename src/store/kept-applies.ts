/** Which applies are kept after they have ended. */
import { ownerOfApply } from './apply-turns.js';
import { type Store, transaction } from './database.js';

/** What an apply counts as beside what it has: those that change little have a limit, too. */
const ROW_BYTES = 8_192;

/** Its rollback needs what it has saved. */
const IS_FREE = `applies.id NOT IN (
  SELECT rollback_of FROM applies WHERE finished_at IS NULL AND rollback_of IS NOT NULL)`;

/**
 * Deletes applies that ended long ago, with what their rollback needs; and of who has more of them than so many MiB,
 * first those that cannot be rolled back, then the oldest. Everybody keeps the newest one, whatever it takes.
 * @returns how many were deleted
 */
export async function pruneApplies(store: Store, days: number, megabytes: number): Promise<number> {
  const old = await deleteFree(
    store,
    "SELECT id FROM applies WHERE finished_at < clock_timestamp() - ? * interval '1 day'",
    days,
  );
  // Sizes are as they are stored, and are taken once.
  await store.knex.raw(
    `UPDATE applies SET kept_bytes = ? + pg_column_size(changes) + pg_column_size(plan)
            + coalesce(pg_column_size(written), 0) + coalesce(pg_column_size(error_details), 0)
            + coalesce((SELECT sum(pg_column_size(apply_undo)) FROM apply_undo WHERE apply_id = applies.id), 0)
      WHERE finished_at IS NOT NULL AND kept_bytes IS NULL`,
    [ROW_BYTES],
  );
  const beyondLimit = await deleteFree(
    store,
    `SELECT id FROM (
       SELECT id, row_number() OVER kept AS place, sum(kept_bytes) OVER kept AS bytes FROM applies
        WHERE finished_at IS NOT NULL
       WINDOW kept AS (PARTITION BY ${ownerOfApply('applies')}
                       ORDER BY state = 'succeeded' DESC, finished_at DESC, id)) AS ended
      WHERE place > 1 AND bytes > ?`,
    megabytes * 1024 * 1024,
  );
  return old + beyondLimit;
}

/**
 * Deletes applies that no rollback needs. Their rows are locked before that is looked at: one whose rollback is being
 * added is left, and none is added to one that goes.
 * @param chosen SQL: their ids
 */
async function deleteFree(store: Store, chosen: string, bound: number): Promise<number> {
  return transaction(store, async ({ knex }) => {
    const { rows } = await knex.raw<{ rows: { id: string }[] }>(
      `SELECT id FROM applies WHERE id IN (${chosen}) FOR UPDATE SKIP LOCKED`,
      [bound],
    );
    if (rows.length === 0) return 0;
    return knex('applies')
      .whereIn(
        'id',
        rows.map(({ id }) => id),
      )
      .whereRaw(IS_FREE)
      .delete();
  });
}
