/** Tokens that were made with API_KEY are worth as long as it is the same. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('tokens', (table) => {
    // The digest of API_KEY; null: made by a user, or before this column was there, which is of no use any more.
    table.text('key_hash');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('tokens', (table) => {
    table.dropColumn('key_hash');
  });
}
