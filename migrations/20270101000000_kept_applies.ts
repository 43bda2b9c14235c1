import type { Knex } from 'knex';

/** What an apply that has ended takes, with what its rollback needs: each user keeps so many bytes of them. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('applies', (table) => {
    // Null: it was not measured yet.
    table.bigInteger('kept_bytes');
  });
  await knex.raw(
    'CREATE INDEX applies_unmeasured ON applies (id) WHERE finished_at IS NOT NULL AND kept_bytes IS NULL',
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('applies', (table) => table.dropColumn('kept_bytes'));
}
