import type { Knex } from 'knex';

/**
 * What requests take while they are queued, and schedules: their owners have a limit. It is 0 of what was queued
 * before, and by processes of the version before: it ends.
 */
export async function up(knex: Knex): Promise<void> {
  for (const table of ['jobs', 'schedules'])
    await knex.schema.alterTable(table, (columns) =>
      columns.integer('queued_bytes').notNullable().defaultTo(0),
    );
  await knex.raw(
    `UPDATE schedules SET queued_bytes =
       8192 + octet_length(path) + octet_length(headers::text) + coalesce(octet_length(body), 0)`,
  );
  // Read without the rows.
  await knex.raw('DROP INDEX jobs_unfinished');
  await knex.raw(
    `CREATE INDEX jobs_unfinished ON jobs (endpoint_id) INCLUDE (queued_bytes) WHERE state IN ('queued', 'running')`,
  );
  // Rows that the way back of an apply puts back.
  await knex.raw(
    `UPDATE apply_undo SET row = row || '{"queued_bytes": 0}' WHERE table_name IN ('jobs', 'schedules')`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP INDEX jobs_unfinished');
  for (const table of ['jobs', 'schedules'])
    await knex.schema.alterTable(table, (columns) => columns.dropColumn('queued_bytes'));
  await knex.raw(`CREATE INDEX jobs_unfinished ON jobs (endpoint_id) WHERE state IN ('queued', 'running')`);
}
