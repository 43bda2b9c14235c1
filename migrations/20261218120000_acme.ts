import type { Knex } from 'knex';

/** Certificates that are ordered from an ACME server. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('certificates', (table) => {
    // The directory of the ACME server; null for one that a user has set.
    table.text('ordered_from');
  });
  await knex.schema.createTable('acme_accounts', (table) => {
    table.text('directory_url').primary();
    table.text('key_encrypted').notNullable();
    // Null: it has to be asked for.
    table.text('url');
    // The contact that the server knows.
    table.text('email');
    table.timestamp('created_at').notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.createTable('acme_orders', (table) => {
    table.uuid('domain_id').primary().references('id').inTable('domains').onDelete('CASCADE');
    table.text('host').notNullable();
    // The ticket of one try: a job that has another one comes too late.
    table.uuid('ticket').notNullable().defaultTo(knex.raw('gen_random_uuid()'));
    table.text('state').notNullable().defaultTo('queued');
    // Failures in a row.
    table.integer('failures').notNullable().defaultTo(0);
    table.text('error');
    table.timestamp('tried_at');
    table.timestamp('next_try_at').notNullable().defaultTo(knex.fn.now());
    table.check("state IN ('queued', 'ordering', 'issued', 'failed')", [], 'acme_orders_state');
  });
  await knex.schema.createTable('acme_challenges', (table) => {
    table.text('token').primary();
    table.uuid('domain_id').notNullable().references('id').inTable('domains').onDelete('CASCADE');
    table.text('host').notNullable();
    table.text('type').notNullable();
    // What the server expects over HTTP.
    table.text('answer').notNullable();
    // What it expects over TLS, where it asks by that: PEM.
    table.text('chain');
    table.text('key_encrypted');
    table.timestamp('expires_at').notNullable();
  });
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['acme_challenges', 'acme_orders', 'acme_accounts']) await knex.schema.dropTable(table);
  await knex.schema.alterTable('certificates', (table) => {
    table.dropColumn('ordered_from');
  });
}
