import type { Knex } from 'knex';

/**
 * Where files of a sqlite service were opened that its config named before, by their paths: when it names one of them
 * again, that file was there.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) =>
    table.jsonb('former_files').notNullable().defaultTo('{}'),
  );
  // Rows that the way back of an apply puts back.
  await knex.raw(`UPDATE apply_undo SET row = row || '{"former_files": {}}' WHERE table_name = 'services'`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) => table.dropColumn('former_files'));
}
