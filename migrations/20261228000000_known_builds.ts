import type { Knex } from 'knex';

/**
 * For whom a build was recorded that needed no compiler: an endpoint, or an owner. Such a build has one row for each
 * source, however often it is asked for. Null: a build that was compiled, or was recorded by an earlier version.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => table.text('known_for'));
  await knex.raw(
    'CREATE UNIQUE INDEX builds_known_unique ON builds (known_for, source_key) WHERE known_for IS NOT NULL',
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => table.dropColumn('known_for'));
}
