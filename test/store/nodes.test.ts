/** Which nodes count as alive, also when PostgreSQL was away for longer than a node may be silent. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { expect } from 'chai';
import { awaitLiveNodes, joinNodes } from '../../src/reconcile/nodes.js';
import type { Database } from '../../src/store/database.js';
import {
  areHeartbeatsMissing,
  heartbeat,
  liveNodes,
  type NodeKind,
  registerNode,
} from '../../src/store/nodes.js';
import { PID_NAMESPACE } from '../../src/util/process-liveness.js';
import { createTestLog } from '../support/log.js';
import { useTestStore } from '../support/store.js';

describe('nodes', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  beforeEach(() => store.knex('nodes').delete());

  /** A node that was last heard of so many seconds ago. */
  async function node(kind: NodeKind, silentForSeconds: number): Promise<string> {
    const id = randomUUID();
    await registerNode(store, { id, kind, hostname: 'here', pid: 1, pid_namespace: '', info: {} });
    const heartbeat_at = store.knex.raw("clock_timestamp() - ? * interval '1 second'", [silentForSeconds]);
    await store.knex('nodes').where({ id }).update({ heartbeat_at });
    return id;
  }
  const alive = async (kind: NodeKind) => (await liveNodes(store, kind)).map(({ id }) => id);

  it('counts a node as dead when only it has no heartbeat', async () => {
    const worker = await node('worker', 1);
    const living = await node('gateway', 2);
    await node('gateway', 11);
    expect(await areHeartbeatsMissing(store)).to.equal(false);
    expect(await heartbeat(store, worker)).to.equal(true);
    expect(await alive('gateway')).to.deep.equal([living]);
    expect((await awaitLiveNodes(store, 'gateway')).map(({ id }) => id)).to.deep.equal([living]);
  });

  it('counts all nodes as alive again with the first heartbeat after an outage', async () => {
    const worker = await node('worker', 31);
    const gateways = [await node('gateway', 30), await node('gateway', 32)];
    const deadBefore = await node('gateway', 45);
    expect(await alive('gateway')).to.deep.equal([]);
    expect(await areHeartbeatsMissing(store)).to.equal(true);
    const present = awaitLiveNodes(store, 'gateway');
    expect(await heartbeat(store, worker)).to.equal(true);
    expect(await alive('gateway'))
      .to.have.members(gateways)
      .and.not.include(deadBefore);
    expect((await present).map(({ id }) => id)).to.have.members(gateways);
  });

  it('waits for nodes without heartbeats only for a limited time', async () => {
    await node('gateway', 30);
    expect(await awaitLiveNodes(store, 'gateway')).to.deep.equal([]);
  });

  it('removes nodes of killed processes, but not those of a container with the same host name', async () => {
    const registered = async (pid: number, pid_namespace: string) => {
      const id = randomUUID();
      await registerNode(store, { id, kind: 'gateway', hostname: hostname(), pid, pid_namespace, info: {} });
      return id;
    };
    /** No process can have it: Linux ends at 2^22. */
    const killed = 5_000_000;
    const [ofBefore, ofKilled] = [process.pid, killed].map((pid) => registered(pid, PID_NAMESPACE));
    const others = [process.pid, killed].map((pid) => registered(pid, 'a boot pid:[4026532000]'));
    const [before, dead] = [await ofBefore, await ofKilled];
    const elsewhere = await Promise.all(others);
    const joined = await joinNodes(store, 'gateway', {}, createTestLog().log);
    const left = await alive('gateway');
    expect(left).to.have.members([...elsewhere, joined.id]);
    expect(left).to.not.include(before).and.not.include(dead);
    await joined.leave();
  });

  it('notifies a node that it had expired', async () => {
    expect(await heartbeat(store, randomUUID())).to.equal(false);
    await node('worker', 30);
    expect(await heartbeat(store, randomUUID())).to.equal(false);
  });
});
