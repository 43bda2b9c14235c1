import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) => {
    // Desired state. Of several object storages, the one that was activated first serves.
    table.timestamp('activated_at');
    // Grows with every change an actor host has to know of, bindings included.
    table.integer('version').notNullable().defaultTo(1);
  });

  // Observed state: what each actor host makes of a service.
  await knex.schema.createTable('service_observations', (table) => {
    table.uuid('node_id').notNullable().references('nodes.id').onDelete('CASCADE');
    table.uuid('service_id').notNullable().references('services.id').onDelete('CASCADE').index();
    table.text('state').notNullable().checkIn(['inactive', 'connecting', 'connected', 'unreachable']);
    // The service version that was acted on.
    table.integer('version').notNullable();
    table.text('message').notNullable();
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.primary(['node_id', 'service_id']);
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('service_observations');
  await knex.schema.alterTable('services', (table) => {
    table.dropColumn('activated_at');
    table.dropColumn('version');
  });
}
