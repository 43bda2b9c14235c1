import type { Knex } from 'knex';

/** Whose turn a build takes: the host that its endpoint is served at. Null: it was asked for by an earlier version. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => table.text('owner'));
  await knex.raw(
    "CREATE INDEX builds_unfinished_of_owner ON builds (owner) WHERE state IN ('queued', 'running')",
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => table.dropColumn('owner'));
}
