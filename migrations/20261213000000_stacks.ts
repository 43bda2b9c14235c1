import type { Knex } from 'knex';

const OWNED = ['domains', 'collections', 'endpoints', 'services'] as const;

/**
 * Whom objects belong to that files have made; and names of services, and of collections within their domain, are
 * unique: files know them by these. Of several with one name, all but the oldest get another one.
 */
export async function up(knex: Knex): Promise<void> {
  for (const name of OWNED) {
    await knex.schema.alterTable(name, (table) => {
      // The stack that has made it, and alone may remove it; null: nobody's.
      table.text('stack').index();
    });
  }
  await renameDoubles(knex, 'services', 'service', []);
  await renameDoubles(knex, 'collections', 'collection', ['domain_id']);
  await knex.schema.alterTable('services', (table) => {
    table.unique(['name'], { indexName: 'services_name_unique' });
  });
  await knex.schema.alterTable('collections', (table) => {
    table.unique(['domain_id', 'name'], { indexName: 'collections_name_unique' });
  });
}

interface Named {
  readonly id: string;
  readonly name: string;
  readonly domain_id?: string;
}

/** Says which, on the log of the release. */
async function renameDoubles(
  knex: Knex,
  table: string,
  kind: string,
  within: readonly 'domain_id'[],
): Promise<void> {
  const rows: Named[] = await knex(table)
    .select('id', 'name', ...within)
    .orderBy(['created_at', 'id']);
  const placeOf = (row: Named, name: string) =>
    JSON.stringify([...within.map((column) => row[column]), name]);
  const names = new Set(rows.map((row) => placeOf(row, row.name)));
  const seen = new Set<string>();
  for (const row of rows) {
    if (!seen.has(placeOf(row, row.name))) {
      seen.add(placeOf(row, row.name));
      continue;
    }
    let number = 2;
    while (names.has(placeOf(row, numbered(row.name, number)))) number++;
    const name = numbered(row.name, number);
    names.add(placeOf(row, name));
    seen.add(placeOf(row, name));
    await knex(table).where({ id: row.id }).update({ name });
    const message = `the ${kind} ${row.id} had the name of an older one, "${row.name}": its name is now "${name}"`;
    (knex.client as { logger: { warn(text: string): void } }).logger.warn(message);
  }
}

/** Within the length of a name. */
function numbered(name: string, number: number): string {
  const suffix = ` (${number})`;
  return [...name].slice(0, 255 - suffix.length).join('') + suffix;
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.alterTable('collections', (table) => {
    table.dropUnique(['domain_id', 'name'], 'collections_name_unique');
  });
  await knex.schema.alterTable('services', (table) => {
    table.dropUnique(['name'], 'services_name_unique');
  });
  for (const name of OWNED) {
    await knex.schema.alterTable(name, (table) => {
      table.dropColumn('stack');
    });
  }
}
