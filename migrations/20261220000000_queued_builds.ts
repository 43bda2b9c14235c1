import type { Knex } from 'knex';

/** When the latest attempt of a build was queued: one that was queued again a moment ago is not lost. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE builds ADD COLUMN queued_at timestamptz NOT NULL DEFAULT clock_timestamp()');
  await knex.raw('UPDATE builds SET queued_at = created_at');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => table.dropColumn('queued_at'));
}
