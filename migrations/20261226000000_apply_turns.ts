import type { Knex } from 'knex';

const BEFORE = [
  ...['queued', 'compiling', 'preparing', 'committing', 'converging', 'succeeded', 'failed'],
  ...['undoing', 'undone', 'not_undone'],
];

/** Several applies may compile at a time; one has its turn to change the installation. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('applies', (table) => {
    // It fails rather than wait for others.
    table.boolean('no_wait').notNullable().defaultTo(false);
    // All that it needs is compiled: it has its turn, or waits for it.
    table.timestamp('ready_at');
    // Its turn has begun, which lasts until it has ended.
    table.timestamp('turn_at');
  });
  // The one that is going on was begun by a version without turns: it has one.
  await knex('applies')
    .whereNull('finished_at')
    .update({ turn_at: knex.raw('clock_timestamp()') });
  await knex.raw(`CREATE UNIQUE INDEX applies_turn ON applies ((true))
    WHERE turn_at IS NOT NULL AND finished_at IS NULL`);
  await knex.raw('CREATE INDEX applies_going_on ON applies (created_at) WHERE finished_at IS NULL');
  await knex.raw('DROP INDEX applies_unfinished');
  await allow(knex, [...BEFORE, 'waiting']);
}

export async function down(knex: Knex): Promise<void> {
  await knex('applies')
    .whereNull('finished_at')
    .whereNull('turn_at')
    .update({
      ...{ state: 'failed', finished_at: knex.raw('clock_timestamp()') },
      ...{
        error_code: 'apply_busy',
        error: 'The version was changed while it waited for its turn; apply again.',
      },
    });
  await knex('applies').where({ state: 'waiting' }).update({ state: 'compiling' });
  await allow(knex, BEFORE);
  await knex.raw('DROP INDEX applies_going_on');
  await knex.raw('DROP INDEX applies_turn');
  await knex.raw('CREATE UNIQUE INDEX applies_unfinished ON applies ((true)) WHERE finished_at IS NULL');
  await knex.schema.alterTable('applies', (table) => table.dropColumns('no_wait', 'ready_at', 'turn_at'));
}

async function allow(knex: Knex, states: readonly string[]): Promise<void> {
  await knex.raw('ALTER TABLE applies DROP CONSTRAINT applies_state_known');
  const known = states.map((state) => `'${state}'`).join(', ');
  await knex.raw(`ALTER TABLE applies ADD CONSTRAINT applies_state_known CHECK (state IN (${known}))`);
}
