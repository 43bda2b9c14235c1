import type { Knex } from 'knex';

/** What who asked for an apply might do then: it is not done when they may do less, as it begins. */
export async function up(knex: Knex): Promise<void> {
  // Null: a process of the version before took the request.
  await knex.schema.alterTable('applies', (table) => table.jsonb('rights'));
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('applies', (table) => table.dropColumn('rights'));
}
