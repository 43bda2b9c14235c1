/** Which nodes count as alive, also when PostgreSQL was away for longer than a node may be silent. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { presentNodes } from '../../src/reconcile/present-nodes.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { heartbeat, isSilent, liveNodes, type NodeKind, registerNode } from '../../src/store/nodes.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

describe('nodes', () => {
  let database: TestDatabase;
  let store: Database;
  before(async () => {
    database = await createDatabase();
    store = openDatabase(database.url, () => undefined);
  });
  after(async () => {
    await store.close();
    await database.drop();
  });
  beforeEach(() => store.knex('nodes').delete());

  /** A node that was last heard of so many seconds ago. */
  async function node(kind: NodeKind, silentForSeconds: number): Promise<string> {
    const id = randomUUID();
    await registerNode(store, { id, kind, hostname: 'here', pid: 1, info: {} });
    const heartbeat_at = store.knex.raw("clock_timestamp() - ? * interval '1 second'", [silentForSeconds]);
    await store.knex('nodes').where({ id }).update({ heartbeat_at });
    return id;
  }
  const alive = async (kind: NodeKind) => (await liveNodes(store, kind)).map(({ id }) => id);

  it('are dead when they are silent while others are not', async () => {
    const worker = await node('worker', 1);
    const living = await node('gateway', 2);
    await node('gateway', 11);
    expect(await isSilent(store)).to.equal(false);
    expect(await heartbeat(store, worker)).to.equal(true);
    expect(await alive('gateway')).to.deep.equal([living]);
    expect((await presentNodes(store, 'gateway')).map(({ id }) => id)).to.deep.equal([living]);
  });

  it('are all alive again with the first that is heard of, when none could be', async () => {
    const worker = await node('worker', 31);
    const gateways = [await node('gateway', 30), await node('gateway', 32)];
    const deadBefore = await node('gateway', 45);
    expect(await alive('gateway')).to.deep.equal([]);
    expect(await isSilent(store)).to.equal(true);
    const present = presentNodes(store, 'gateway');
    expect(await heartbeat(store, worker)).to.equal(true);
    expect(await alive('gateway'))
      .to.have.members(gateways)
      .and.not.include(deadBefore);
    expect((await present).map(({ id }) => id)).to.have.members(gateways);
  });

  it('that nobody speaks for are waited for only so long', async () => {
    await node('gateway', 30);
    expect(await presentNodes(store, 'gateway')).to.deep.equal([]);
  });

  it('are told that they were taken for dead', async () => {
    expect(await heartbeat(store, randomUUID())).to.equal(false);
    await node('worker', 30);
    expect(await heartbeat(store, randomUUID())).to.equal(false);
  });
});
