import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('domains', (table) => {
    identity(table, knex);
    table.text('host').notNullable().unique({ indexName: 'domains_host_unique' });
    table.text('description');
    table.boolean('enabled').notNullable().defaultTo(true);
    timestamps(table, knex);
  });

  await knex.schema.createTable('collections', (table) => {
    identity(table, knex);
    table.uuid('domain_id').notNullable().references('domains.id').onDelete('CASCADE').index();
    table.text('description');
    table.text('base_path');
    table.boolean('enabled').notNullable().defaultTo(true);
    timestamps(table, knex);
  });

  // What was asked to be compiled, and what came of it. The queue carries only the id.
  await knex.schema.createTable('builds', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.text('source_key').notNullable();
    table.text('code').notNullable();
    table.jsonb('dependencies').notNullable();
    table.text('state').notNullable().checkIn(['queued', 'running', 'succeeded', 'failed']);
    // Grows when a lost or abandoned build is queued again, so that each try has a job id of its own.
    table.integer('attempt').notNullable().defaultTo(1);
    table.text('request_id').notNullable();
    table.boolean('cached').notNullable().defaultTo(false);
    table.text('error_code');
    table.text('error');
    table.jsonb('diagnostics').notNullable().defaultTo('[]');
    table.text('artifact');
    table.jsonb('timings').notNullable().defaultTo('{}');
    table.uuid('worker_id');
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('started_at');
    table.timestamp('finished_at').index();
  });
  // Two identical requests at once share one build.
  await knex.raw(
    "CREATE UNIQUE INDEX builds_in_flight_unique ON builds (source_key) WHERE state IN ('queued', 'running')",
  );

  // The executables the artifact store holds, by what they were made from.
  await knex.schema.createTable('artifacts', (table) => {
    table.text('source_key').notNullable();
    table.text('toolchain').notNullable();
    table.text('digest').notNullable().index();
    table.integer('size').notNullable();
    table.jsonb('diagnostics').notNullable().defaultTo('[]');
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.primary(['source_key', 'toolchain']);
  });

  await knex.schema.createTable('endpoints', (table) => {
    identity(table, knex);
    table.text('path').notNullable();
    table.text('method').notNullable().checkIn(['GET', 'POST', 'PUT', 'DELETE', 'PATCH']);
    table.text('domain').notNullable();
    table.uuid('collection_id').references('collections.id').onDelete('CASCADE').index();
    table.text('description');
    table.text('code');
    table.jsonb('dependencies');
    table.boolean('enabled').notNullable().defaultTo(true);
    // base_path and path joined, e.g. /shop/items/{id}; and the same with the names of its parameters left out.
    table.text('route').notNullable();
    table.text('route_key').notNullable();
    table.text('source_key').notNullable();
    table
      .text('status')
      .notNullable()
      .defaultTo('created')
      .checkIn(['created', 'compiled', 'running', 'stopped', 'error']);
    table.text('last_error');
    table.uuid('build_id').references('builds.id').onDelete('SET NULL').index();
    table.text('artifact');
    table.text('artifact_source_key');
    // Desired state: the artifact that should run, null when none should.
    table.text('desired_artifact');
    // The last artifact that was seen running everywhere since it was asked for: what a failed start goes back to.
    table.text('confirmed_artifact');
    // Request id of the API call that asked for it.
    table.text('desired_by');
    // Grows with every change a gateway has to know of.
    table.integer('version').notNullable().defaultTo(1);
    timestamps(table, knex);
    table.unique(['domain', 'method', 'route_key'], { indexName: 'endpoints_route_unique' });
  });

  await knex.schema.createTable('services', (table) => {
    identity(table, knex);
    table.text('service_type').notNullable();
    // AES-256-GCM: configs hold passwords.
    table.text('config_encrypted').notNullable();
    table.boolean('enabled').notNullable().defaultTo(true);
    timestamps(table, knex);
  });

  await knex.schema.createTable('endpoint_services', (table) => {
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE');
    table.uuid('service_id').notNullable().references('services.id').onDelete('CASCADE').index();
    table.text('pool_id').notNullable();
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.primary(['endpoint_id', 'pool_id'], { constraintName: 'endpoint_services_pool_unique' });
  });

  // One row per live process that reconciles or builds.
  await knex.schema.createTable('nodes', (table) => {
    table.uuid('id').primary();
    table.text('kind').notNullable().checkIn(['worker', 'gateway', 'actor-host']);
    table.text('hostname').notNullable();
    table.integer('pid').notNullable();
    table.jsonb('info').notNullable().defaultTo('{}');
    table.timestamp('started_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('heartbeat_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
  });

  // Observed state: what each gateway node runs for an endpoint.
  await knex.schema.createTable('observations', (table) => {
    table.uuid('node_id').notNullable().references('nodes.id').onDelete('CASCADE');
    table.uuid('endpoint_id').notNullable().references('endpoints.id').onDelete('CASCADE').index();
    table.text('state').notNullable().checkIn(['running', 'failed', 'stopped']);
    // The artifact the state is about, and the endpoint version that was acted on.
    table.text('artifact');
    table.integer('version').notNullable();
    table.integer('pid');
    table.text('error');
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.primary(['node_id', 'endpoint_id']);
  });

  // Outlives nodes, endpoints and restarts: the sum is `requests_handled`.
  await knex.schema.createTable('request_counters', (table) => {
    table.uuid('node_id').primary();
    table.bigInteger('requests').notNullable();
  });
}

export async function down(knex: Knex): Promise<void> {
  for (const table of [
    'request_counters',
    'observations',
    'nodes',
    'endpoint_services',
    'services',
    'endpoints',
    'artifacts',
    'builds',
    'collections',
    'domains',
  ]) {
    await knex.schema.dropTable(table);
  }
}

function identity(table: Knex.CreateTableBuilder, knex: Knex): void {
  table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
  table.text('name').notNullable();
}

function timestamps(table: Knex.CreateTableBuilder, knex: Knex): void {
  table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()')).index();
  table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
}
