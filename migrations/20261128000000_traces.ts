import type { Knex } from 'knex';

/** The trace that a request belongs to, as W3C Trace Context has it. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('logs', (table) => {
    table.text('trace_id');
  });
  await knex.raw('CREATE INDEX logs_trace ON logs (trace_id) WHERE trace_id IS NOT NULL');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('logs', (table) => {
    table.dropColumn('trace_id');
  });
}
