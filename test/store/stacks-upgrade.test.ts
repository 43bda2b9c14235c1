/** Names that become unique: doubles from before get others, and the log of the release says which. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import knex from 'knex';
import { knexConfig, migrate } from '../../src/store/database.js';
import { createDatabase } from '../support/postgres.js';

const MIGRATION = '20261213000000_stacks.js';

describe('the upgrade to unique names', () => {
  it('renames all but the oldest of each name in the upgrade to unique names, and says which', async () => {
    const database = await createDatabase();
    const store = knex(knexConfig(database.url, 1));
    try {
      await store.migrate.down({ name: MIGRATION });
      const made = async (table: string, columns: object, day: number) => {
        const created_at = new Date(Date.UTC(2026, 0, day));
        await store(table).insert({ id: randomUUID(), created_at, ...columns });
      };
      const service = { service_type: 'redis', config_encrypted: '' };
      const long = 'x'.repeat(255);
      for (const [at, name] of ['a', 'a (2)', 'a', 'b', 'a', long, long].entries())
        await made('services', { ...service, name }, at + 1);
      const domains = [randomUUID(), randomUUID()];
      for (const id of domains) await made('domains', { id, name: 'd', host: `${id}.example` }, 1);
      for (const [at, domain_id] of [domains[0], domains[0], domains[1]].entries())
        await made('collections', { name: 'c', domain_id }, at + 1);

      const said: string[] = [];
      await migrate(database.url, (message) => said.push(message));
      const names = (table: string): Promise<string[]> => store(table).orderBy('created_at').pluck('name');
      expect(await names('services')).to.deep.equal([
        ...['a', 'a (2)', 'a (3)', 'b', 'a (4)', long, `${'x'.repeat(251)} (2)`],
      ]);
      expect(await names('collections')).to.deep.equal(['c', 'c (2)', 'c']);
      expect(said).to.have.length(4);
      expect(said.join('\n')).to.match(
        /the service \S+ had the name of an older one, "a": its name is now "a \(3\)"/,
      );
      expect(said.join('\n')).to.match(/the collection \S+ .* "c": its name is now "c \(2\)"/);
    } finally {
      await store.destroy();
      await database.drop();
    }
  });
});
