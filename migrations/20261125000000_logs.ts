import type { Knex } from 'knex';

/** What handlers say and what became of requests, in partitions by the hour; gateways make these. */
export async function up(knex: Knex): Promise<void> {
  // One for each start of a gateway. Its entries have numbers without gaps, and become visible in their order.
  await knex.schema.createTable('log_writers', (table) => {
    table.increments('id');
    table.uuid('node_id').notNullable();
    table.bigInteger('last_number').notNullable().defaultTo(0);
    // The time of the entry with that number; no later one is older. Before the first one, no time is known.
    table.timestamp('last_at').notNullable().defaultTo(knex.raw('to_timestamp(0)'));
  });
  await knex.raw(
    `CREATE TABLE logs (
       at timestamptz NOT NULL,
       writer_id integer NOT NULL,
       number bigint NOT NULL,
       kind text NOT NULL CHECK (kind IN ('output', 'request')),
       level smallint NOT NULL,
       endpoint_id uuid NOT NULL,
       version integer,
       request_id text,
       message text NOT NULL,
       fields json,
       method text,
       route text,
       path text,
       status smallint,
       duration_ms real,
       bytes bigint,
       client_ip text,
       PRIMARY KEY (at, writer_id, number)
     ) PARTITION BY RANGE (at)`,
  );
  await knex.raw('CREATE INDEX logs_endpoint ON logs (endpoint_id, at, writer_id, number)');
  await knex.raw('CREATE INDEX logs_request ON logs (request_id)');
  await knex.raw('CREATE INDEX logs_writer ON logs (writer_id, number)');
  await knex.raw('CREATE INDEX logs_errors ON logs (endpoint_id, at) WHERE level >= 50');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('logs');
  await knex.schema.dropTable('log_writers');
}
