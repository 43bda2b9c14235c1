import type { Knex } from 'knex';

/** Who may do what: users, their sessions and tokens, failed logins, and the audit; services are of certain domains. */
export async function up(knex: Knex): Promise<void> {
  const now = knex.raw('clock_timestamp()');
  await knex.schema.createTable('users', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    // In lower case.
    table.text('email').notNullable().unique({ indexName: 'users_email_unique' });
    table.text('name').notNullable();
    // Null: signs in with OpenID Connect only.
    table.text('password_hash');
    table.text('role').notNullable().checkIn(['admin', 'editor', 'viewer']);
    // Hosts; empty: everywhere.
    table.specificType('domains', 'text[]').notNullable().defaultTo('{}');
    // The issuer of OpenID Connect, and the subject by which it knows the user.
    table.text('issuer');
    table.text('subject');
    table.timestamp('created_at').notNullable().defaultTo(now);
    table.timestamp('updated_at').notNullable().defaultTo(now);
    table.unique(['issuer', 'subject']);
  });
  await knex.schema.createTable('sessions', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    // The cookie itself is not stored.
    table.text('hash').notNullable().unique();
    table.uuid('user_id').notNullable().references('users.id').onDelete('CASCADE').index();
    table.text('address').notNullable();
    table.text('agent');
    table.timestamp('created_at').notNullable().defaultTo(now);
    table.timestamp('seen_at').notNullable().defaultTo(now);
  });
  await knex.schema.createTable('tokens', (table) => {
    table.uuid('id').primary().defaultTo(knex.raw('gen_random_uuid()'));
    table.text('hash').notNullable().unique();
    table.text('name').notNullable();
    // Null: made with API_KEY.
    table.uuid('user_id').references('users.id').onDelete('CASCADE').index();
    table.specificType('permissions', 'text[]').notNullable();
    // Hosts; empty: all that who made it may see.
    table.specificType('domains', 'text[]').notNullable().defaultTo('{}');
    table.timestamp('created_at').notNullable().defaultTo(now);
    table.timestamp('expires_at');
    table.timestamp('last_used_at');
  });
  await knex.schema.createTable('login_failures', (table) => {
    // A digest of what is counted: an account, an address, or both.
    table.text('key').primary();
    table.integer('failures').notNullable();
    table.timestamp('began_at').notNullable();
  });
  await knex.schema.createTable('audit', (table) => {
    table.bigIncrements('id');
    table.timestamp('at').notNullable().defaultTo(now).index();
    table.jsonb('actor').notNullable();
    table.text('address').notNullable();
    table.text('request_id').notNullable();
    table.text('method').notNullable();
    // The route, or the path where there is none.
    table.text('action').notNullable();
    table.text('outcome').notNullable().checkIn(['changed', 'refused']);
    table.integer('status').notNullable();
    table.text('object_kind');
    table.text('object_id');
    table.jsonb('before');
    table.jsonb('after');
    table.index(['object_id', 'id']);
  });
  await knex.schema.alterTable('services', (table) => {
    // Hosts whose endpoints may use it; empty: all.
    table.specificType('domains', 'text[]').notNullable().defaultTo('{}');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('services', (table) => {
    table.dropColumn('domains');
  });
  for (const table of ['audit', 'login_failures', 'tokens', 'sessions', 'users'])
    await knex.schema.dropTable(table);
}
