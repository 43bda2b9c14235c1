/** Services from before their files were recorded: also those that only the rollback of an apply has. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import knex from 'knex';
import { restoreRows } from '../../src/store/apply-rows.js';
import { knexConfig, migrate, openDatabase } from '../../src/store/database.js';
import { createDatabase } from '../support/postgres.js';

const MIGRATION = '20261223000000_sqlite_files.js';

describe('the upgrade to recorded files of sqlite services', () => {
  it('takes files of sqlite services from before the upgrade to be there, also of those that come back', async () => {
    const database = await createDatabase();
    const old = knex(knexConfig(database.url, 1));
    const store = openDatabase(database.url, () => undefined);
    try {
      await old.migrate.down({ name: MIGRATION });
      const insert = async (name: string, service_type: string) => {
        const id = randomUUID();
        await old('services').insert({ id, name, service_type, config_encrypted: 'sealed' });
        return id;
      };
      await insert('stays', 'sqlite');
      await insert('other', 'redis');
      // As an apply has saved and deleted it.
      const applyId = randomUUID();
      await old('applies').insert({
        ...{ id: applyId, stack: 's', plan_hash: 'h', request_id: 'r' },
        ...{ plan: '{}', changes: '[]', hosts: [] },
      });
      const removed = [await insert('comes back', 'sqlite'), await insert('comes back, too', 'redis')];
      for (const [position, id] of removed.entries()) {
        await old.raw(
          `INSERT INTO apply_undo (apply_id, position, table_name, object_id, row, sealed)
           SELECT ?, ?, 'services', id, to_jsonb(services) - 'config_encrypted', config_encrypted
             FROM services WHERE id = ?`,
          [applyId, position, id],
        );
        await old('services').where({ id }).delete();
      }
      await migrate(database.url);
      await restoreRows(store, applyId, removed, false);
      const rows = await store.knex('services').orderBy('name').select('name', 'file_hosts');
      expect(rows).to.deep.equal([
        { name: 'comes back', file_hosts: ['*'] },
        { name: 'comes back, too', file_hosts: [] },
        { name: 'other', file_hosts: [] },
        { name: 'stays', file_hosts: ['*'] },
      ]);
    } finally {
      await old.destroy();
      await store.close();
      await database.drop();
    }
  });
});
