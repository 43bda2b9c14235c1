import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => {
    // Title of the imported API. The next import of it finds endpoints that its document no longer has.
    table.text('imported_from').index();
    // sha256 of the code that an import generated: while the code has it, no user has changed it.
    table.text('generated_digest');
    // sha256 of the handler in a bundle. Code with neither digest is a user's: replacing it is a warning.
    table.text('handler_digest');
  });

  // Bundles that were imported, and what came of their handlers.
  await knex.schema.createTable('imports', (table) => {
    table.uuid('id').primary();
    table.text('state').notNullable().checkIn(['queued', 'running', 'succeeded', 'failed']);
    table.text('title').notNullable();
    table.boolean('compile').notNullable();
    table.boolean('start').notNullable();
    table.text('request_id').notNullable();
    // What was written together with this row: collection, endpoints, counts, warnings, handlers without operation.
    table.jsonb('outcome').notNullable();
    // The status of each endpoint when the import ended, by id; null until then.
    table.jsonb('statuses');
    // Grows with every change, those of its handlers included.
    table.integer('version').notNullable().defaultTo(1);
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('finished_at').index();
  });
  await knex.raw('CREATE INDEX imports_unfinished ON imports (created_at) WHERE finished_at IS NULL');

  // The handlers of a bundle that are compiled, and started, as jobs of their own.
  await knex.schema.createTable('import_handlers', (table) => {
    table.uuid('import_id').notNullable().references('imports.id').onDelete('CASCADE');
    // The endpoint may be deleted while its handler is worked on: no reference.
    table.uuid('endpoint_id').notNullable();
    table.integer('position').notNullable();
    table.text('name').notNullable();
    table.text('file').notNullable();
    table
      .text('state')
      .notNullable()
      .defaultTo('queued')
      .checkIn(['queued', 'compiling', 'compiled', 'starting', 'started', 'failed']);
    // Where and why it failed.
    table.text('stage').checkIn(['compile', 'start']);
    table.text('message');
    table.uuid('build_id');
    table.uuid('worker_id');
    // Grows when lost work is queued again, so that each try has a job id of its own.
    table.integer('attempt').notNullable().defaultTo(1);
    // The version of the import that its last change made.
    table.integer('version').notNullable().defaultTo(1);
    table.timestamp('queued_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('finished_at');
    table.primary(['import_id', 'endpoint_id']);
  });
  await knex.raw(
    'CREATE INDEX import_handlers_unfinished ON import_handlers (queued_at) WHERE finished_at IS NULL',
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('import_handlers');
  await knex.schema.dropTable('imports');
  await knex.schema.alterTable('endpoints', (table) => {
    table.dropColumn('imported_from');
    table.dropColumn('generated_digest');
    table.dropColumn('handler_digest');
  });
}
