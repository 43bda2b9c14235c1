/** Counts of requests, by nodes that come and go. */
import { expect } from 'chai';
import type { Database } from '../../src/store/database.js';
import { removeNode } from '../../src/store/nodes.js';
import { addRequests, foldRequestCounters } from '../../src/store/request-counters.js';
import { readStatistics } from '../../src/store/statistics.js';
import { addNode } from '../support/nodes.js';
import { useTestStore } from '../support/store.js';

describe('counts of requests', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  const join = () => addNode(store, 'gateway');
  const rows = () => store.knex('request_counters').pluck('node_id');
  const handled = async () => (await readStatistics(store)).requests_handled;

  it('adds up the counts of requests of gateways that are gone, and keeps the sum', async () => {
    const [stays, ...goes] = [await join(), await join(), await join()];
    for (const id of [stays, ...goes]) await addRequests(store, id, 10);
    for (const id of goes) await removeNode(store, id);
    await foldRequestCounters(store);
    expect(await rows())
      .to.have.length(2)
      .and.include(stays);
    expect(await handled()).to.equal(30);
    // What a gateway counts after it was taken for dead is not lost either.
    await addRequests(store, goes[0] ?? '', 5);
    await Promise.all([foldRequestCounters(store), foldRequestCounters(store), addRequests(store, stays, 1)]);
    expect(await rows()).to.have.length(2);
    expect(await handled()).to.equal(36);
  });
});
