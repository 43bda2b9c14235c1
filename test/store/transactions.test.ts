/** Transactions that get into each other's way. */
import { expect } from 'chai';
import { type Database, type Store, transaction } from '../../src/store/database.js';
import { useTestStore } from '../support/store.js';

describe('transactions', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  const hostOf = (number: number) => `t${number}.example`;
  const rename = (tx: Store, number: number, name: string) =>
    tx
      .knex('domains')
      .where({ host: hostOf(number) })
      .update({ name });
  const names = () => store.knex('domains').orderBy('host').pluck<string[]>('name');

  it('repeats transactions after a deadlock', async () => {
    await store.knex('domains').insert([1, 2].map((number) => ({ host: hostOf(number), name: 'new' })));
    // Each holds one row when both ask for that of the other, the first time.
    let holding = 0;
    let bothHold: () => void = () => undefined;
    const both = new Promise<void>((resolve) => {
      bothHold = resolve;
    });
    let tries = 0;
    const crossing = (first: number, second: number, name: string) =>
      transaction(store, async (tx) => {
        tries++;
        await rename(tx, first, name);
        if (++holding === 2) bothHold();
        await both;
        await rename(tx, second, name);
      });
    await Promise.all([crossing(1, 2, 'a'), crossing(2, 1, 'b')]);
    // The second try of one may come between the two locks of the other once more.
    expect(tries).to.be.at.least(3);
    const [left, right] = await names();
    expect(left, 'one after the other').to.equal(right);
  });

  it('does not repeat a transaction after another failure', async () => {
    let tries = 0;
    const failing = transaction(store, async (tx) => {
      tries++;
      await rename(tx, 1, 'c');
      throw new Error('no');
    });
    expect(await failing.catch((error: unknown) => error)).to.be.instanceOf(Error);
    expect(tries).to.equal(1);
    expect(await names()).not.to.include('c');
  });
});
