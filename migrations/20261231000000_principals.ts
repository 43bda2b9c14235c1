import type { Knex } from 'knex';

/**
 * Who asked for a build, an import or a queued request, as turns are taken by: a user and their tokens are the same
 * one. Null: nobody, as for the run of a schedule, or a process of the version before; then it is the turn of the
 * domain.
 */
export async function up(knex: Knex): Promise<void> {
  for (const table of ['builds', 'imports', 'jobs'])
    await knex.schema.alterTable(table, (columns) => columns.text('principal'));
  await knex.raw(
    `CREATE INDEX jobs_queued_by ON jobs (endpoint_id, coalesce(principal, ''), run_at) WHERE state = 'queued'`,
  );
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['builds', 'imports', 'jobs'])
    await knex.schema.alterTable(table, (columns) => columns.dropColumn('principal'));
}
