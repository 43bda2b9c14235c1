import type { Knex } from 'knex';

/** Where the process id of a node is known: containers can have the same host name, and the same ids. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('nodes', (table) => table.text('pid_namespace').notNullable().defaultTo(''));
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('nodes', (table) => table.dropColumn('pid_namespace'));
}
