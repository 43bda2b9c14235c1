/** Which applies are kept after they have ended. */
import { ownerOfApply } from './apply-turns.js';
import type { Store } from './database.js';

/** What an apply counts as beside what it has: those that change little have a limit, too. */
const ROW_BYTES = 8_192;

/** One that takes it back needs what it has saved. */
const IS_FREE = `applies.id NOT IN (
  SELECT rollback_of FROM applies WHERE finished_at IS NULL AND rollback_of IS NOT NULL)`;

/**
 * Deletes applies that ended long ago, with what their rollback needs; and of who has more of them than so many MiB,
 * the oldest. Everybody keeps the newest one, whatever it takes.
 */
export async function pruneApplies(store: Store, days: number, megabytes: number): Promise<void> {
  const { knex } = store;
  await knex('applies')
    .whereRaw(IS_FREE)
    .whereRaw("finished_at < clock_timestamp() - ? * interval '1 day'", [days])
    .delete();
  // Sizes are as they are stored, so that nothing large is read.
  const { rowCount: measured } = await knex.raw<{ rowCount: number }>(
    `UPDATE applies SET kept_bytes = ? + pg_column_size(changes) + pg_column_size(plan)
            + coalesce(pg_column_size(written), 0) + coalesce(pg_column_size(error_details), 0)
            + coalesce((SELECT sum(pg_column_size(apply_undo)) FROM apply_undo WHERE apply_id = applies.id), 0)
      WHERE finished_at IS NOT NULL AND kept_bytes IS NULL`,
    [ROW_BYTES],
  );
  if (measured > 0) await pruneLargest(store, megabytes * 1024 * 1024);
}

async function pruneLargest({ knex }: Store, bytes: number): Promise<void> {
  await knex.raw(
    `DELETE FROM applies USING (
       SELECT id, row_number() OVER newest AS place, sum(kept_bytes) OVER newest AS bytes FROM applies
        WHERE finished_at IS NOT NULL
       WINDOW newest AS (PARTITION BY ${ownerOfApply('applies')} ORDER BY finished_at DESC, id)) AS kept
      WHERE applies.id = kept.id AND place > 1 AND bytes > ? AND ${IS_FREE}`,
    [bytes],
  );
}
