import type { Knex } from 'knex';

/** Who asked for the latest build of an endpoint: another one may have asked for the same source first. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => table.jsonb('build_actor'));
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => table.dropColumn('build_actor'));
}
