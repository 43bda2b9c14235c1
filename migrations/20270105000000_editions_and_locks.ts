import type { Knex } from 'knex';

/** Who has a source has its edition and its lock. Null: 2021, and none. */
const SOURCES = ['endpoints', 'endpoint_versions', 'builds'] as const;
/** Who has what was built of a source has the lock that was resolved for it. Null: not known. */
const BUILT = ['endpoint_versions', 'builds', 'artifacts'] as const;

/** Contents of locks are among those of files of sources; rows have digests. Only adds. */
export async function up(knex: Knex): Promise<void> {
  for (const name of SOURCES)
    await knex.schema.alterTable(name, (table) => {
      table.text('edition');
      table.jsonb('lock');
    });
  for (const name of BUILT) await knex.schema.alterTable(name, (table) => table.jsonb('resolved_lock'));
  await knex.schema.alterTable('builds', (table) => {
    // The key of the source alone, where `source_key` is also of what the build began with; null: it is the same.
    table.text('draft_key');
    // The lock that the build began with; null: none.
    table.jsonb('base_lock');
    table.boolean('resolves_anew').notNullable().defaultTo(false);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('builds', (table) => {
    table.dropColumn('draft_key');
    table.dropColumn('base_lock');
    table.dropColumn('resolves_anew');
  });
  for (const name of BUILT) await knex.schema.alterTable(name, (table) => table.dropColumn('resolved_lock'));
  for (const name of SOURCES)
    await knex.schema.alterTable(name, (table) => {
      table.dropColumn('edition');
      table.dropColumn('lock');
    });
}
