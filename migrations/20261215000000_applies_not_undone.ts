import type { Knex } from 'knex';

const BEFORE = [
  ...['queued', 'compiling', 'preparing', 'committing', 'converging', 'succeeded', 'failed'],
  ...['undoing', 'undone'],
];

/** Applies whose undoing fails again and again end, so that others can go on. */
export async function up(knex: Knex): Promise<void> {
  await allow(knex, [...BEFORE, 'not_undone']);
}

export async function down(knex: Knex): Promise<void> {
  await knex('applies').where({ state: 'not_undone' }).update({ state: 'failed' });
  await allow(knex, BEFORE);
}

async function allow(knex: Knex, states: readonly string[]): Promise<void> {
  const { rows } = await knex.raw<{ rows: { conname: string }[] }>(
    `SELECT conname FROM pg_constraint
      WHERE conrelid = 'applies'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%state%'`,
  );
  for (const { conname } of rows) await knex.raw('ALTER TABLE applies DROP CONSTRAINT ??', [conname]);
  const known = states.map((state) => `'${state}'`).join(', ');
  await knex.raw(`ALTER TABLE applies ADD CONSTRAINT applies_state_known CHECK (state IN (${known}))`);
}
