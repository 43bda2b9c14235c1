/** Transactions of an actor, on a real PostgreSQL. */
import { expect } from 'chai';
import { postgresDriver } from '../../src/actors/drivers/postgres/driver.js';
import { call, failsWith, startActor } from '../support/actors.js';
import { BACKENDS, type RunningBackend } from '../support/backends/all.js';
import { eventually } from '../support/eventually.js';

const LONG_MS = 60_000;

describe('transactions of an actor', () => {
  let backend: RunningBackend<'postgres'>;
  let actor: ReturnType<typeof startActor<'postgres'>>;
  before(async () => {
    backend = await BACKENDS.postgres();
    actor = startActor(postgresDriver, { ...backend.config, pool_size: 2 });
    await actor.call(sql('CREATE TABLE entries (id integer)'));
  });
  after(async () => {
    await actor.drain();
    await backend.remove();
  });

  const sql = (text: string) =>
    call({ operation: 'query', payload: JSON.stringify({ sql: text, params: [] }), timeoutMs: LONG_MS });

  it('that are abandoned do not wait for the statement in progress', async () => {
    for (let round = 0; round < 3; round++) {
      const transaction = await actor.begin(LONG_MS, LONG_MS);
      await transaction.call(sql('INSERT INTO entries VALUES (1)'));
      const sleeping = failsWith('deadline', transaction.call(sql('SELECT pg_sleep(60)')));
      await eventually(async () => {
        const running =
          "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'";
        expect(String((await actor.call(sql(running))).payload)).to.include('[[1]]');
      });
      await transaction.abandon();
      await sleeping;
    }
    expect(actor.use.inUse).to.equal(0);
    expect(String((await actor.call(sql('SELECT count(*) FROM entries'))).payload)).to.include('[[0]]');
  });

  it('run their calls one after the other, and end once', async () => {
    const transaction = await actor.begin(LONG_MS, LONG_MS);
    const calls = [1, 2, 3].map((id) => transaction.call(sql(`INSERT INTO entries VALUES (${id})`)));
    const committed = transaction.commit(LONG_MS);
    const late = failsWith('invalid', transaction.call(sql('SELECT 1')));
    await Promise.all([...calls, committed, late]);
    await transaction.rollback();
    await transaction.abandon();
    expect(String((await actor.call(sql('SELECT count(*) FROM entries'))).payload)).to.include('[[3]]');
    expect(actor.use.inUse).to.equal(0);
  });
});
