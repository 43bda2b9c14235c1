import type { Knex } from 'knex';

/** Applies: whole sets of changes of an installation, each done entirely or not at all. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('applies', (table) => {
    table.uuid('id').primary();
    table.text('stack').notNullable();
    table.text('plan_hash').notNullable();
    // The apply whose way back this is.
    table.uuid('rollback_of').references('applies.id').onDelete('SET NULL').index();
    table
      .text('state')
      .notNullable()
      .defaultTo('queued')
      .checkIn([
        ...['queued', 'compiling', 'preparing', 'committing', 'converging', 'succeeded', 'failed'],
        ...['undoing', 'undone'],
      ]);
    // Who asked for it, as JSON.
    table.jsonb('actor');
    table.text('request_id').notNullable();
    // The plan as it is shown: without code, and without what is secret.
    table.jsonb('plan').notNullable();
    // All that is changed, as it was and as it should be. No value of a secret is in it.
    table.jsonb('changes').notNullable();
    // The hosts that it concerns; those who are limited to some see applies of these only.
    table.specificType('hosts', 'text[]').notNullable();
    // How far it is.
    table.jsonb('progress').notNullable().defaultTo('{}');
    // What it has done.
    table.jsonb('outcome');
    table.text('error_code');
    table.text('error');
    // What there is to know of the error, such as diagnostics by endpoint.
    table.jsonb('error_details');
    // What was written, for who waits and for the undoing: endpoints with their deployments, services.
    table.jsonb('written');
    // The changes of the undoing are committed.
    table.timestamp('undone_at');
    table.uuid('worker_id');
    // Grows when lost work is queued again, so that each try has a job id of its own.
    table.integer('attempt').notNullable().defaultTo(1);
    // Grows with every change.
    table.integer('version').notNullable().defaultTo(1);
    table.timestamp('queued_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('committed_at');
    table.timestamp('finished_at').index();
  });
  // One at a time.
  await knex.raw('CREATE UNIQUE INDEX applies_unfinished ON applies ((true)) WHERE finished_at IS NULL');
  await knex.raw('CREATE INDEX applies_created ON applies (created_at, id)');

  // Rows as they were before an apply changed or deleted them, for the way back.
  await knex.schema.createTable('apply_undo', (table) => {
    table.uuid('apply_id').notNullable().references('applies.id').onDelete('CASCADE');
    table.integer('position').notNullable();
    table.text('table_name').notNullable();
    // Id of the object that the row is, or belongs to.
    table.uuid('object_id').notNullable();
    // Without its encrypted column.
    table.jsonb('row').notNullable();
    // The value of that column: it is encrypted again when the key changes.
    table.text('sealed');
    table.primary(['apply_id', 'position']);
    table.index(['apply_id', 'object_id']);
  });

  await knex.schema.alterTable('deployments', (table) => {
    // The apply that it belongs to, which settles it with all others.
    table.uuid('apply_id').references('applies.id').onDelete('SET NULL');
  });
  await knex.raw('CREATE INDEX deployments_apply ON deployments (apply_id) WHERE apply_id IS NOT NULL');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('deployments', (table) => {
    table.dropColumn('apply_id');
  });
  await knex.schema.dropTable('apply_undo');
  await knex.schema.dropTable('applies');
}
