import type { Knex } from 'knex';

/**
 * Documents as imports have read them, for exports: which endpoint is of which operation of which document. Endpoints
 * that were imported before have none.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('imported_documents', (table) => {
    table.uuid('id').primary();
    table.text('domain').notNullable();
    table.text('sha256').notNullable();
    // JSON as text: jsonb has no order of members, and not every text.
    table.text('content').notNullable();
    table.timestamp('imported_at').notNullable().defaultTo(knex.fn.now());
    table.unique(['domain', 'sha256']);
  });
  await knex.schema.alterTable('endpoints', (table) => {
    table
      .uuid('imported_document_id')
      .references('id')
      .inTable('imported_documents')
      .onDelete('SET NULL')
      .index();
    // METHOD and path of the document.
    table.text('imported_operation');
  });
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('endpoints', (table) => {
    table.dropColumn('imported_document_id');
    table.dropColumn('imported_operation');
  });
  await knex.schema.dropTable('imported_documents');
}
