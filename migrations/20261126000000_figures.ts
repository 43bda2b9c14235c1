import type { Knex } from 'knex';

/** What became of requests, and what handlers used, by the minute; coarser with age. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('figures', (table) => {
    // There need not be such an endpoint any more. Zeros: all endpoints together.
    table.uuid('endpoint_id').notNullable();
    // How long it is, seconds.
    table.integer('step').notNullable();
    // When it begins.
    table.timestamp('at').notNullable();
    // 0: no handler was asked.
    table.integer('version').notNullable();
    table.uuid('node_id').notNullable();
    for (const status of ['status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'status_other'])
      table.bigInteger(status).notNullable();
    table.integer('restarts').notNullable();
    table.double('cpu_seconds').notNullable();
    // The most in this time.
    table.integer('in_flight').notNullable();
    table.bigInteger('memory_bytes').notNullable();
    // Requests by duration: numbers of buckets, and how many requests each has. A bucket may be there several times.
    table.specificType('buckets', 'smallint[]').notNullable();
    table.specificType('counts', 'bigint[]').notNullable();
    table.primary(['endpoint_id', 'step', 'at', 'version', 'node_id']);
    table.index(['step', 'at']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('figures');
}
