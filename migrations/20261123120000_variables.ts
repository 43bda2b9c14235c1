import type { Knex } from 'knex';

const OWNERS = ['domain', 'collection', 'endpoint'] as const;

/** What handlers find in their environment: plain variables, and secrets. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('variables', (table) => {
    for (const owner of OWNERS) table.uuid(`${owner}_id`).references(`${owner}s.id`).onDelete('CASCADE');
    table.text('name').notNullable();
    table.text('value');
    // AES-256-GCM; of a secret, instead of `value`.
    table.text('value_encrypted');
    // Who set it, as JSON; null: not known.
    table.jsonb('actor');
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    for (const owner of OWNERS)
      table.unique([`${owner}_id`, 'name'], { indexName: `variables_of_${owner}_unique` });
    table.check('num_nonnulls(domain_id, collection_id, endpoint_id) = 1', undefined, 'variables_one_owner');
    table.check('num_nonnulls(value, value_encrypted) = 1', undefined, 'variables_one_value');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('variables');
}
