import type { Knex } from 'knex';

/**
 * The hosts of endpoints that were deleted: what they have written to the log counts to their domain further on. By a
 * trigger, because endpoints also go with their collection.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('former_endpoints', (table) => {
    table.uuid('id').primary();
    table.text('domain').notNullable();
    table.timestamp('deleted_at').notNullable().index();
  });
  await knex.raw(`
    CREATE FUNCTION keep_former_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO former_endpoints (id, domain, deleted_at) VALUES (OLD.id, OLD.domain, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET domain = excluded.domain, deleted_at = excluded.deleted_at;
      RETURN NULL;
    END $$`);
  await knex.raw(
    'CREATE TRIGGER keep_former AFTER DELETE ON endpoints FOR EACH ROW EXECUTE FUNCTION keep_former_endpoint()',
  );
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TRIGGER keep_former ON endpoints');
  await knex.raw('DROP FUNCTION keep_former_endpoint');
  await knex.schema.dropTable('former_endpoints');
}
