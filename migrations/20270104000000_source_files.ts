import type { Knex } from 'knex';

/** Who has a source has its files. Null: none beside the code, which is `handler.rs`. */
const SOURCES = ['endpoints', 'endpoint_versions', 'builds'] as const;

/** The files of sources beside the code: each source has their paths and digests, and each content is there once. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('source_files', (table) => {
    // sha256, in hex.
    table.text('digest').primary();
    table.binary('content').notNullable();
    // Null: a source has it, as far as is known.
    table.timestamp('unused_since');
  });
  for (const name of SOURCES)
    await knex.schema.alterTable(name, (table) => {
      table.text('entry');
      table.jsonb('files');
    });
}

export async function down(knex: Knex): Promise<void> {
  for (const name of SOURCES)
    await knex.schema.alterTable(name, (table) => {
      table.dropColumn('entry');
      table.dropColumn('files');
    });
  await knex.schema.dropTable('source_files');
}
