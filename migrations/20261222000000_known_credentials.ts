import type { Knex } from 'knex';

/**
 * Keys and tokens that were right, by the network that they came from: they go on working while others are guessed
 * there.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('known_credentials', (table) => {
    table.text('key').primary();
    table.timestamp('used_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('known_credentials');
}
