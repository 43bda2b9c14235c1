import type { Knex } from 'knex';

/** Alerts, what they have told of, and the webhooks that tell it. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('alerts', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.text('condition').notNullable();
    // What it is about; null: everything. The named endpoint or service need not exist any more.
    table.jsonb('scope');
    // Threshold of `error_rate`: so many percent of the requests of so many minutes.
    table.integer('percent').notNullable();
    table.integer('minutes').notNullable();
    table.boolean('enabled').notNullable();
    // AES-256-GCM. URLs of webhooks often have a secret in them.
    table.text('url_encrypted').notNullable();
    table.text('secret_encrypted').notNullable();
    table.timestamp('created_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('updated_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
  });
  await knex.schema.createTable('alert_events', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.uuid('alert_id').notNullable().references('alerts.id').onDelete('CASCADE');
    // The endpoint or the service.
    table.uuid('subject_id').notNullable();
    // What is told of it.
    table.jsonb('subject').notNullable();
    table.text('message').notNullable();
    table.timestamp('began_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.timestamp('ended_at');
  });
  await knex.raw(
    'CREATE UNIQUE INDEX alert_events_open ON alert_events (alert_id, subject_id) WHERE ended_at IS NULL',
  );
  await knex.raw('CREATE INDEX alert_events_of_alert ON alert_events (alert_id, began_at)');
  await knex.schema.createTable('alert_deliveries', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.uuid('event_id').notNullable().references('alert_events.id').onDelete('CASCADE');
    table.text('status').notNullable().checkIn(['firing', 'resolved']);
    table.text('state').notNullable().checkIn(['queued', 'sent', 'failed']).defaultTo('queued');
    table.integer('attempts').notNullable().defaultTo(0);
    table.timestamp('next_at').notNullable().defaultTo(knex.raw('clock_timestamp()'));
    table.integer('last_status');
    table.text('last_error');
    table.unique(['event_id', 'status']);
  });
  await knex.raw(`CREATE INDEX alert_deliveries_queued ON alert_deliveries (next_at) WHERE state = 'queued'`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('alert_deliveries');
  await knex.schema.dropTable('alert_events');
  await knex.schema.dropTable('alerts');
}
