import type { Knex } from 'knex';

/** Work for later: requests that are sent to handlers by workers, at once, later, or again and again. */
export async function up(knex: Knex): Promise<void> {
  const request = (table: Knex.CreateTableBuilder) => {
    table.text('method').notNullable();
    table.text('path').notNullable();
    table.jsonb('headers').notNullable();
    // Null for none, and when the request is not sent any more.
    table.binary('body');
  };

  await knex.schema.createTable('schedules', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE').index();
    table.text('cron').notNullable();
    table.text('timezone').notNullable();
    request(table);
    table.boolean('enabled').notNullable();
    // Null while it is disabled.
    table.timestamp('next_run_at');
    table.timestamp('last_run_at');
    // Since it was made.
    table.integer('missed_runs').notNullable().defaultTo(0);
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
  });
  await knex.raw('CREATE INDEX schedules_next_run ON schedules (next_run_at) WHERE next_run_at IS NOT NULL');

  await knex.schema.createTable('jobs', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE');
    table.uuid('schedule_id').references('schedules.id').onDelete('SET NULL');
    // When a run of a schedule should begin.
    table.timestamp('planned_at');
    request(table);
    table.text('state').notNullable().checkIn(['queued', 'running', 'succeeded', 'failed']);
    // Counts how often it was queued: a job of the queue is for one of them.
    table.integer('generation').notNullable().defaultTo(1);
    // How often it was sent.
    table.integer('attempts').notNullable().defaultTo(0);
    table.integer('max_attempts').notNullable();
    table.integer('backoff_ms').notNullable();
    table.timestamp('run_at').notNullable();
    table.integer('last_status');
    table.text('last_error');
    table.text('deduplication_id');
    table.uuid('worker_id');
    // Id of the API call that asked for it.
    table.text('request_id').notNullable();
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('finished_at').index();
    table.index(['endpoint_id', 'created_at']);
    table.unique(['schedule_id', 'planned_at']);
  });
  await knex.raw(`CREATE INDEX jobs_queued ON jobs (run_at) WHERE state = 'queued'`);
  await knex.raw(`CREATE INDEX jobs_running ON jobs (worker_id) WHERE state = 'running'`);
  await knex.raw(`CREATE INDEX jobs_unfinished ON jobs (endpoint_id) WHERE state IN ('queued', 'running')`);
  await knex.raw(
    `CREATE UNIQUE INDEX jobs_deduplicated ON jobs (endpoint_id, deduplication_id)
      WHERE state IN ('queued', 'running') AND deduplication_id IS NOT NULL`,
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('jobs');
  await knex.schema.dropTable('schedules');
}
