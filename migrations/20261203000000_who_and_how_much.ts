import type { Knex } from 'knex';

/** The length of what was encrypted, or up to two bytes more: base64, of which 28 bytes are no text. */
const SECRET_BYTES = `octet_length(regexp_replace(value_encrypted, '^.*:', '')) * 3 / 4 - 28`;

/**
 * Numbers of versions are not given again; builds know who asked for them; variables know how long they are, secrets
 * too, which are encrypted; gateways observe each version of a deployment.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => {
    // The highest number that a version of it was given; null: `latest_version`.
    table.integer('last_number');
  });
  await knex.schema.alterTable('builds', (table) => {
    // Who asked for it, as JSON; null: not known.
    table.jsonb('actor');
  });
  await knex.schema.alterTable('variables', (table) => {
    // Bytes of `NAME=value`; null: written by a process that is not upgraded yet.
    table.integer('bytes');
  });
  await knex.schema.alterTable('observations', (table) => {
    // [{version, state, error}]: how each version of the desired deployment stands.
    table.jsonb('versions').notNullable().defaultTo('[]');
  });
  await knex.raw(
    `UPDATE variables SET bytes = octet_length(name) + 1 + coalesce(octet_length(value), ${SECRET_BYTES})`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('observations', (table) => {
    table.dropColumn('versions');
  });
  await knex.schema.alterTable('variables', (table) => {
    table.dropColumn('bytes');
  });
  await knex.schema.alterTable('builds', (table) => {
    table.dropColumn('actor');
  });
  await knex.schema.alterTable('endpoints', (table) => {
    table.dropColumn('last_number');
  });
}
