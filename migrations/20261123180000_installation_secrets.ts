import type { Knex } from 'knex';

/** Secrets of the installation, and the services whose configs refer to them. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('installation_secrets', (table) => {
    table.text('name').primary();
    // AES-256-GCM.
    table.text('value_encrypted').notNullable();
    // Who set it, as JSON; null: not known.
    table.jsonb('actor');
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
  });
  // Configs are encrypted: without this table, nothing would tell which services use a secret.
  await knex.schema.createTable('service_secrets', (table) => {
    table.uuid('service_id').notNullable().references('services.id').onDelete('CASCADE');
    table.text('secret_name').notNullable().references('installation_secrets.name').index();
    table.primary(['service_id', 'secret_name']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('service_secrets');
  await knex.schema.dropTable('installation_secrets');
}
