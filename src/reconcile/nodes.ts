/** The registration of this process as a node, and the other live nodes. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../store/database.js';
import {
  areHeartbeatsMissing,
  heartbeat,
  liveNodes,
  type Node,
  type NodeKind,
  nodesOfNamespace,
  registerNode,
  removeExpiredNodes,
  removeNode,
  updateNodeInfo,
} from '../store/nodes.js';
import { CoalescingTask } from '../util/coalescing-task.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';
import { isAlive, PID_NAMESPACE } from '../util/process-liveness.js';

const HEARTBEAT_MS = 2_000;
/** After this long without a heartbeat, which is less than a node takes to expire, a node may be about to. */
const DOUBTFUL_AFTER_MS = 2 * HEARTBEAT_MS;
/** One heartbeat renews all nodes, so one arrives within this time. */
const LONGEST_WAIT_MS = HEARTBEAT_MS + 1_000;
const POLL_MS = 100;
const NAMESPACE = { hostname: hostname(), pid_namespace: PID_NAMESPACE };

/** A registered node. */
export interface NodeRegistration {
  readonly id: string;
  /** Replaces its data for other processes. */
  update(info: Readonly<Record<string, unknown>>): Promise<void>;
  /**
   * Makes sure that it has not expired, as in an outage of PostgreSQL: whoever changes something waits for the nodes
   * that are alive, and for no other.
   * @throws when PostgreSQL is unavailable
   */
  renew(): Promise<void>;
  /** Stops the heartbeat and removes the node. */
  leave(): Promise<void>;
}

/**
 * Registers this process and keeps it registered.
 * @param info data for other processes
 * @param onExpired called when the node had expired and was registered again: its observations were deleted
 */
export async function joinNodes(
  store: Store,
  kind: NodeKind,
  info: Readonly<Record<string, unknown>>,
  log: Logger,
  onExpired: () => void = () => undefined,
): Promise<NodeRegistration> {
  let node = { id: randomUUID(), kind, ...NAMESPACE, pid: process.pid, info };
  await removeKilledNodes(store, kind);
  await registerNode(store, node);
  let lastBeat = performance.now();
  const beating = new CoalescingTask(async () => {
    const sentAt = performance.now();
    if (!(await heartbeat(store, node.id))) {
      await registerNode(store, node);
      onExpired();
    }
    lastBeat = sentAt;
  });
  const periodic = new PeriodicTask(
    HEARTBEAT_MS,
    async () => {
      await beating.run();
      await removeExpiredNodes(store);
    },
    (error) => log.warn({ err: error }, 'heartbeat failed'),
  );
  return {
    id: node.id,
    update: async (changed) => {
      node = { ...node, info: changed };
      await updateNodeInfo(store, node);
    },
    renew: async () => {
      if (performance.now() - lastBeat > DOUBTFUL_AFTER_MS) await beating.run();
    },
    leave: async () => {
      await periodic.stop();
      await beating.idle();
      await removeNode(store, node.id).catch((error: unknown) =>
        log.warn({ err: error }, 'node could not be removed; it expires by itself'),
      );
    },
  };
}

/**
 * Like `joinNodes`, for a process that is of use without PostgreSQL: it joins as soon as that answers.
 * @returns leaves
 */
export function joinNodesWhenPossible(store: Store, kind: NodeKind, log: Logger): () => Promise<void> {
  let node: NodeRegistration | undefined;
  const stop = new AbortController();
  const joining = (async () => {
    while (!node && !stop.signal.aborted) {
      try {
        node = await joinNodes(store, kind, {}, log);
      } catch (error) {
        log.warn({ err: error }, 'this process could not be registered; trying again soon');
        await delay(HEARTBEAT_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    }
  })();
  return async () => {
    stop.abort();
    await joining;
    await node?.leave();
  };
}

/**
 * The live nodes of a kind. After an outage of PostgreSQL no node has a recent heartbeat: then this waits for the first
 * one, which renews all nodes that were alive before.
 */
export async function awaitLiveNodes(store: Store, kind: NodeKind): Promise<Node[]> {
  const nodes = await liveNodes(store, kind);
  if (nodes.length > 0) return nodes;
  const deadline = performance.now() + LONGEST_WAIT_MS;
  while ((await areHeartbeatsMissing(store)) && performance.now() < deadline) await delay(POLL_MS);
  return liveNodes(store, kind);
}

/**
 * Removes nodes of killed processes whose ids are known here, so that no request waits until they expire. Other
 * containers on this machine may have its host name and the same ids.
 */
async function removeKilledNodes(store: Store, kind: NodeKind): Promise<void> {
  for (const { id, pid } of await nodesOfNamespace(store, kind, NAMESPACE)) {
    if (pid === process.pid || !isAlive(pid)) await removeNode(store, id);
  }
}

/**
 * Which of some other machines are alive beside this one: those whose nodes have a heartbeat from now on. So one that
 * was killed a moment ago is not, although its node has not expired. Waits for the next heartbeat, or for that.
 */
export async function machinesAlive(
  store: Store,
  kind: NodeKind,
  machines: readonly string[],
): Promise<ReadonlySet<string>> {
  // After an outage of PostgreSQL, none has a recent heartbeat at first.
  const read = async () =>
    (await awaitLiveNodes(store, kind)).filter((node) => machines.includes(node.hostname));
  const before = new Map((await read()).map(({ id, heartbeat_at }) => [id, heartbeat_at.getTime()]));
  for (;;) {
    const nodes = await read();
    const beating = nodes.filter(({ id, heartbeat_at }) => heartbeat_at.getTime() > (before.get(id) ?? 0));
    const alive = new Set(beating.map((node) => node.hostname));
    if (nodes.every((node) => alive.has(node.hostname))) return alive;
    await delay(POLL_MS);
  }
}
