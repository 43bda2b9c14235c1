/** Applies from before they took turns: the one that goes on has its own. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import knex from 'knex';
import { earlierApplies, takeTurn } from '../../src/store/apply-turns.js';
import { knexConfig, migrate, openDatabase } from '../../src/store/database.js';
import { createDatabase } from '../support/postgres.js';

const MIGRATION = '20261226000000_apply_turns.js';

describe('the upgrade to applies that take turns', () => {
  it('lets an apply of the version before end first, and goes back to one at a time', async () => {
    const database = await createDatabase();
    const old = knex(knexConfig(database.url, 1));
    const store = openDatabase(database.url, () => undefined);
    const insert = async (more: object) => {
      const id = randomUUID();
      const row = { id, stack: 's', plan_hash: 'h', request_id: 'r', plan: '{}', changes: '[]', hosts: [] };
      await old('applies').insert({ ...row, ...more });
      return { id, attempt: 1 };
    };
    try {
      await old.migrate.down({ name: MIGRATION });
      await insert({ state: 'succeeded', finished_at: new Date() });
      const before = await insert({ state: 'converging' });
      await migrate(database.url);
      const next = await insert({ state: 'waiting', ready_at: new Date() });
      expect(await takeTurn(store, next)).to.equal(false);
      expect((await earlierApplies(store, next.id, undefined)).map(({ id }) => id)).to.deep.equal([
        before.id,
      ]);
      expect(await takeTurn(store, before)).to.equal(true);
      await old.migrate.down({ name: MIGRATION });
      expect(await old('applies').whereNull('finished_at').pluck('id')).to.deep.equal([before.id]);
      expect(await old('applies').where({ id: next.id }).pluck('state')).to.deep.equal(['failed']);
    } finally {
      await old.destroy();
      await store.close();
      await database.drop();
    }
  });
});
