import type { Knex } from 'knex';

/**
 * The machines on which the file of a sqlite service was opened. Of those that exist it was anywhere until now, on any
 * machine (`*`), and no empty one takes its place.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) =>
    table.specificType('file_hosts', 'text[]').notNullable().defaultTo('{}'),
  );
  await knex('services').where({ service_type: 'sqlite' }).update({ file_hosts: '{*}' });
  // Rows that the way back of an apply puts back.
  await knex.raw(
    `UPDATE apply_undo SET row = row || jsonb_build_object('file_hosts',
            CASE WHEN row->>'service_type' = 'sqlite' THEN '["*"]'::jsonb ELSE '[]'::jsonb END)
      WHERE table_name = 'services'`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) => table.dropColumn('file_hosts'));
}
