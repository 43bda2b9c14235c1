/** Transactions of an actor, on a real MariaDB, and of the process of a postgres service. */
import { expect } from 'chai';
import type { ActorTransaction } from '../../src/actors/actor-transaction.js';
import type { ActorCall } from '../../src/actors/driver-call.js';
import { mysqlDriver } from '../../src/actors/drivers/mysql/driver.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import { call, failsWith, startActor } from '../support/actors.js';
import { BACKENDS } from '../support/backends/all.js';
import { eventually } from '../support/eventually.js';
import { postgresService } from '../support/native-service.js';

const LONG_MS = 60_000;

/** What the tests use of an actor. */
interface Tested {
  call(call: ActorCall): Promise<DriverAnswer>;
  begin(timeoutMs: number, longestMs: number): Promise<ActorTransaction>;
  /** Connections in use. */
  inUse(): Promise<number | undefined>;
  end(): Promise<void>;
}

async function startMysql(): Promise<Tested> {
  const backend = await BACKENDS.mysql();
  const actor = startActor(mysqlDriver, { ...backend.config, pool_size: 2 });
  return {
    call: (made) => actor.call(made),
    begin: (timeoutMs, longestMs) => actor.begin(timeoutMs, longestMs),
    inUse: async () => actor.use.inUse,
    end: async () => {
      await actor.drain();
      await backend.remove();
    },
  };
}

async function startPostgres(): Promise<Tested> {
  const backend = await BACKENDS.postgres();
  const actor = postgresService.start({ ...backend.config, pool_size: 2 });
  return {
    call: (made) => actor.call(made),
    begin: (timeoutMs) => actor.begin(timeoutMs),
    inUse: async () => (await actor.use())?.inUse,
    end: async () => {
      await actor.drain();
      await backend.remove();
    },
  };
}

const BACKENDS_WITH_TRANSACTIONS = [
  {
    title: 'of an actor',
    start: startMysql,
    sleep: 'SELECT sleep(60)',
    running: "SELECT count(*) FROM information_schema.processlist WHERE info = 'SELECT sleep(60)'",
  },
  {
    title: 'of the process of a postgres service',
    start: startPostgres,
    sleep: 'SELECT pg_sleep(60)',
    running: "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'",
  },
];

for (const { title, start, sleep, running } of BACKENDS_WITH_TRANSACTIONS) {
  describe(`transactions ${title}`, () => {
    let actor: Tested;
    before(async () => {
      actor = await start();
      await actor.call(sql('CREATE TABLE entries (id integer)'));
    });
    after(() => actor?.end());

    const sql = (text: string) =>
      call({ operation: 'query', payload: JSON.stringify({ sql: text, params: [] }), timeoutMs: LONG_MS });
    const value = async (text: string) => String((await actor.call(sql(text))).payload);
    const isFree = () => eventually(async () => expect(await actor.inUse()).to.equal(0));

    it(`an abandoned transaction ${title} does not wait for its running statement`, async () => {
      for (let round = 0; round < 3; round++) {
        const transaction = await actor.begin(LONG_MS, LONG_MS);
        await transaction.call(sql('INSERT INTO entries VALUES (1)'));
        const sleeping = failsWith('deadline', transaction.call(sql(sleep)));
        await eventually(async () => expect(await value(running)).to.include('[[1]]'));
        await transaction.abandon();
        await sleeping;
        await eventually(async () => expect(await value(running)).to.include('[[0]]'));
      }
      await isFree();
      expect(await value('SELECT count(*) FROM entries')).to.include('[[0]]');
    });

    it(`a transaction ${title} runs its calls one after the other, and ends once`, async () => {
      const transaction = await actor.begin(LONG_MS, LONG_MS);
      const calls = [1, 2, 3].map((id) => transaction.call(sql(`INSERT INTO entries VALUES (${id})`)));
      const committed = transaction.commit(LONG_MS);
      const late = failsWith('invalid', transaction.call(sql('SELECT 1')));
      await Promise.all([...calls, committed, late]);
      await transaction.rollback();
      await transaction.abandon();
      expect(await value('SELECT count(*) FROM entries')).to.include('[[3]]');
      await isFree();
    });
  });
}
