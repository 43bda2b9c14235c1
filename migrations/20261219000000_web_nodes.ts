import type { Knex } from 'knex';

const BEFORE = ['worker', 'gateway', 'actor-host'];

/** Processes of the management API are nodes, too: whoever looks at what runs sees them. */
export async function up(knex: Knex): Promise<void> {
  await allow(knex, [...BEFORE, 'web']);
}

export async function down(knex: Knex): Promise<void> {
  await knex('nodes').where({ kind: 'web' }).delete();
  await allow(knex, BEFORE);
}

async function allow(knex: Knex, kinds: readonly string[]): Promise<void> {
  const { rows } = await knex.raw<{ rows: { conname: string }[] }>(
    `SELECT conname FROM pg_constraint
      WHERE conrelid = 'nodes'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%kind%'`,
  );
  for (const { conname } of rows) await knex.raw('ALTER TABLE nodes DROP CONSTRAINT ??', [conname]);
  const known = kinds.map((kind) => `'${kind}'`).join(', ');
  await knex.raw(`ALTER TABLE nodes ADD CONSTRAINT nodes_kind_known CHECK (kind IN (${known}))`);
}
