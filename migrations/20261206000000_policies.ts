import type { Knex } from 'knex';

/** Policies of domains, collections and endpoints; keys of domains; the public keys of issuers of tokens. */
export async function up(knex: Knex): Promise<void> {
  for (const name of ['domains', 'collections', 'endpoints'])
    await knex.schema.alterTable(name, (table) => {
      table.jsonb('policies');
    });
  await knex.schema.createTable('domain_keys', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.uuid('domain_id').notNullable().references('domains.id').onDelete('CASCADE');
    table.text('label').notNullable();
    // SHA-256 of the key, in hexadecimal digits: the key itself is not stored.
    table.text('hash').notNullable().unique();
    // How it begins, so that people find it again.
    table.text('prefix').notNullable();
    // Who made it, as JSON.
    table.jsonb('actor');
    table.timestamp('expires_at');
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.index(['domain_id', 'created_at']);
  });
  await knex.schema.createTable('key_sets', (table) => {
    // Where an issuer of tokens publishes its keys.
    table.text('url').primary();
    // Keys as they were read last; null: not yet.
    table.jsonb('keys');
    table.text('error');
    table.timestamp('fetched_at');
    // When it was last tried, with or without success.
    table.timestamp('tried_at');
    // When a gateway last saw a key that is not among them.
    table.timestamp('wanted_at');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('key_sets');
  await knex.schema.dropTable('domain_keys');
  for (const name of ['domains', 'collections', 'endpoints'])
    await knex.schema.alterTable(name, (table) => {
      table.dropColumn('policies');
    });
}
