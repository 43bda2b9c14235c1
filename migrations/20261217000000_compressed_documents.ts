import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Knex } from 'knex';

/** Documents of imports are compressed before they are sent: PostgreSQL takes longer for it than for all the rest. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('imported_documents', (table) => {
    table.binary('gzip');
  });
  await eachDocument(knex, 'content', async (content: string) => ({ gzip: await promisify(gzip)(content) }));
  await knex.schema.alterTable('imported_documents', (table) => {
    table.dropNullable('gzip');
    table.dropColumn('content');
  });
  // What is compressed already is not compressed again.
  await knex.raw('ALTER TABLE imported_documents ALTER COLUMN gzip SET STORAGE EXTERNAL');
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('imported_documents', (table) => {
    table.text('content');
  });
  await eachDocument(knex, 'gzip', async (zipped: Buffer) => ({
    content: String(await promisify(gunzip)(zipped)),
  }));
  await knex.schema.alterTable('imported_documents', (table) => {
    table.dropNullable('content');
    table.dropColumn('gzip');
  });
}

/** One after the other: each may have many megabytes. */
async function eachDocument<T>(
  knex: Knex,
  column: string,
  changed: (value: T) => Promise<object>,
): Promise<void> {
  for (const id of await knex('imported_documents').pluck<string[]>('id')) {
    const row = await knex('imported_documents').where({ id }).first<Record<string, T>>(column);
    const value = row?.[column];
    if (value !== undefined)
      await knex('imported_documents')
        .where({ id })
        .update(await changed(value));
  }
}
