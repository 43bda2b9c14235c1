import type { Knex } from 'knex';

/** The certificates of domains, for TLS, and alerts that tell when they expire. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('certificates', (table) => {
    table.uuid('domain_id').primary().references('id').inTable('domains').onDelete('CASCADE');
    // PEM: its own first, then those that lead to one that clients know.
    table.text('chain').notNullable();
    table.text('key_encrypted').notNullable();
    table.specificType('names', 'text[]').notNullable();
    table.text('issuer').notNullable();
    // sha256 of the certificate, in hexadecimal digits.
    table.text('fingerprint').notNullable();
    table.timestamp('valid_from').notNullable();
    table.timestamp('expires_at').notNullable();
    table.timestamp('updated_at').notNullable().defaultTo(knex.fn.now());
  });
  await knex.schema.alterTable('alerts', (table) => {
    table.integer('days').notNullable().defaultTo(14);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex('alerts').where({ condition: 'certificate_expiry' }).delete();
  await knex.schema.alterTable('alerts', (table) => {
    table.dropColumn('days');
  });
  await knex.schema.dropTable('certificates');
}
