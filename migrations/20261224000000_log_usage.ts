import type { Knex } from 'knex';

/** What entries of an endpoint take of an hour of the log that is over, bytes. Hours that are missing are measured. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('log_usage', (table) => {
    table.timestamp('hour').notNullable();
    table.uuid('endpoint_id').notNullable();
    table.bigInteger('bytes').notNullable();
    table.primary(['hour', 'endpoint_id']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('log_usage');
}
