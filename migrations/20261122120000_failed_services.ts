import type { Knex } from 'knex';

const CONSTRAINT = 'service_observations_state_check';

/** A service whose process has ended too often is given up. */
export async function up(knex: Knex): Promise<void> {
  await allow(knex, ['inactive', 'connecting', 'connected', 'unreachable', 'failed']);
}

export async function down(knex: Knex): Promise<void> {
  await knex('service_observations').where({ state: 'failed' }).update({ state: 'unreachable' });
  await allow(knex, ['inactive', 'connecting', 'connected', 'unreachable']);
}

async function allow(knex: Knex, states: readonly string[]): Promise<void> {
  await knex.schema.alterTable('service_observations', (table) => {
    table.dropChecks(CONSTRAINT);
  });
  await knex.schema.alterTable('service_observations', (table) => {
    table.check(`state IN (${states.map((state) => `'${state}'`).join(', ')})`, undefined, CONSTRAINT);
  });
}
