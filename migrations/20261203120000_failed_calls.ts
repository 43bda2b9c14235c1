import type { Knex } from 'knex';

/** Failed calls of services are found as errors are: endpoints count both. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    `CREATE INDEX logs_failed_calls ON logs (endpoint_id, at) WHERE level = 40 AND fields->>'target' = 'service'`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP INDEX logs_failed_calls');
}
