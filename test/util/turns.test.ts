/** Turns at something scarce. */
import { expect } from 'chai';
import { type Turn, Turns } from '../../src/util/turns.js';
import { eventually } from '../support/eventually.js';

describe('turns of owners', () => {
  /** Work that ends when it is told to, and the order in which it began. */
  function bench(turns: Turns) {
    const began: string[] = [];
    const ends = new Map<string, () => void>();
    const runs: Promise<void>[] = [];
    return {
      began,
      add: async (owner: string | Turn, name: string) => {
        const work = () => {
          began.push(name);
          return new Promise<void>((resolve) => ends.set(name, resolve));
        };
        runs.push(turns.run(owner, work));
        await new Promise(setImmediate);
      },
      end: async (name: string) => {
        ends.get(name)?.();
        await new Promise(setImmediate);
      },
      endAll: async () => {
        await eventually(() => {
          for (const end of ends.values()) end();
          expect(turns.waiting()).to.equal(0);
        });
        for (const end of ends.values()) end();
        await Promise.all(runs);
      },
    };
  }
  const LONG = 60_000;

  it('one owner alone has all places, and gets none beyond them', async () => {
    const turns = new Turns({ places: 2, beyond: 2, patienceMs: 1 });
    const { add, began, endAll } = bench(turns);
    for (const name of ['a1', 'a2', 'a3']) await add('a', name);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(began).to.deep.equal(['a1', 'a2']);
    expect(turns.waiting('a')).to.equal(1);
    await endAll();
    expect(began).to.deep.equal(['a1', 'a2', 'a3']);
  });

  it('the owner with the fewest places has the next turn, and of several the one that has waited longest', async () => {
    const turns = new Turns({ places: 2, beyond: 0, patienceMs: LONG });
    const { add, began, end, endAll } = bench(turns);
    for (const name of ['a1', 'a2', 'a3', 'a4']) await add('a', name);
    for (const name of ['b1', 'b2']) await add('b', name);
    await add('c', 'c1');
    for (const name of ['a1', 'a2', 'b1', 'c1']) await end(name);
    expect(began).to.deep.equal(['a1', 'a2', 'b1', 'a3', 'c1', 'b2']);
    await endAll();
  });

  it('an owner that has nothing gets one place beyond those that others hold, and they are given back', async () => {
    const turns = new Turns({ places: 2, beyond: 1, patienceMs: 5 });
    const { add, began, end, endAll } = bench(turns);
    for (const name of ['a1', 'a2', 'a3']) await add('a', name);
    for (const name of ['b1', 'b2']) await add('b', name);
    await eventually(() => expect(began).to.deep.equal(['a1', 'a2', 'b1']));
    await add('c', 'c1');
    await end('a1');
    // Still as many as there are places.
    expect(began).to.deep.equal(['a1', 'a2', 'b1']);
    await eventually(() => expect(began).to.deep.equal(['a1', 'a2', 'b1', 'c1']));
    await endAll();
    expect(began).to.have.length(6);
  });

  it('an owner with many parts gets no more than one with one, and its parts share that', async () => {
    const turns = new Turns({ places: 2, beyond: 0, patienceMs: LONG });
    const { add, began, end, endAll } = bench(turns);
    for (const part of ['a', 'b', 'c', 'd'])
      for (const number of [1, 2]) await add({ owner: 'many', part }, `${part}${number}`);
    for (const name of ['one1', 'one2', 'one3']) await add('one', name);
    expect(turns.waiting('many')).to.equal(6);
    expect(turns.waiting('many', 'c')).to.equal(2);
    for (const name of ['a1', 'a2', 'b1', 'one1', 'one2']) await end(name);
    expect(began).to.deep.equal(['a1', 'a2', 'one1', 'b1', 'c1', 'one2', 'one3']);
    await endAll();
    expect(began.slice(7)).to.deep.equal(['d1', 'b2', 'c2', 'd2']);
  });

  it('parts of an owner leave places beyond to owners that have nothing', async () => {
    const turns = new Turns({ places: 1, beyond: 2, beyondOfParts: 1, patienceMs: 5 });
    const { add, began, endAll } = bench(turns);
    for (const part of ['a', 'b', 'c']) await add({ owner: 'many', part }, part);
    await eventually(() => expect(began).to.deep.equal(['a', 'b']));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(began).to.deep.equal(['a', 'b']);
    await add('one', 'one1');
    await eventually(() => expect(began).to.deep.equal(['a', 'b', 'one1']));
    await endAll();
  });

  it('work whose owner gives up waiting for its turn is not done, and holds nobody up', async () => {
    const turns = new Turns({ places: 1, beyond: 1, patienceMs: 5 });
    const { add, began, end, endAll } = bench(turns);
    await add('a', 'a1');
    const givesUp = new AbortController();
    const never = () => Promise.reject(new Error('it was done'));
    const waiting = turns.run('b', never, givesUp.signal).catch(String);
    givesUp.abort(new Error('gone'));
    expect(await waiting).to.equal('Error: gone');
    expect(turns.waiting()).to.equal(0);
    expect(await turns.run('b', never, givesUp.signal).catch(String)).to.equal('Error: gone');
    await add('c', 'c1');
    await end('a1');
    await eventually(() => expect(began).to.deep.equal(['a1', 'c1']));
    await endAll();
  });

  it('a place is free again when the work in it fails', async () => {
    const turns = new Turns({ places: 1, beyond: 0 });
    const failed = await turns.run('a', () => Promise.reject(new Error('no'))).catch(String);
    expect(failed).to.equal('Error: no');
    expect(await turns.run('b', () => Promise.resolve(1))).to.equal(1);
    expect(turns.waiting()).to.equal(0);
  });
});
