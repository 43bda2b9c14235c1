import type { Knex } from 'knex';

/**
 * Whether the file of a sqlite service was opened. Those that exist have one: it was anywhere until now, and no empty
 * one takes its place.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) =>
    table.boolean('has_file').notNullable().defaultTo(false),
  );
  await knex('services').where({ service_type: 'sqlite' }).update({ has_file: true });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) => table.dropColumn('has_file'));
}
