/** The table `nodes`: the live processes that build, route or hold services. */
import type { Store } from './database.js';

export type NodeKind = 'worker' | 'gateway' | 'actor-host';

/** A row. */
export interface Node {
  readonly id: string;
  readonly kind: NodeKind;
  readonly hostname: string;
  readonly pid: number;
  /** What others need to know of it, e.g. the toolchain of a worker. */
  readonly info: Readonly<Record<string, unknown>>;
  readonly started_at: Date;
  readonly heartbeat_at: Date;
}

/** A node counts as dead when it has not been heard of for this long. */
const NODE_EXPIRY_MS = 10_000;
/** SQL, true for rows of `nodes` that are alive. */
export const IS_LIVE_NODE = `heartbeat_at > clock_timestamp() - interval '${NODE_EXPIRY_MS} milliseconds'`;

export async function registerNode(
  store: Store,
  node: Omit<Node, 'started_at' | 'heartbeat_at'>,
): Promise<void> {
  await store.knex('nodes').insert({ ...node, info: JSON.stringify(node.info) });
  store.announce('node', node.id);
}

/** @returns false when the row is gone, because the node was taken for dead */
export async function heartbeat(store: Store, id: string): Promise<boolean> {
  const updated = await store
    .knex('nodes')
    .where({ id })
    .update({ heartbeat_at: store.knex.raw('clock_timestamp()') });
  return updated > 0;
}

/** Removes a node and, with it, all it has observed. */
export async function removeNode(store: Store, id: string): Promise<void> {
  await store.knex('nodes').where({ id }).delete();
  store.announce('node', id);
}

export async function liveNodes(store: Store, kind: NodeKind): Promise<Node[]> {
  return store.knex<Node>('nodes').where({ kind }).whereRaw(IS_LIVE_NODE).orderBy('started_at');
}

/** Nodes that ran on this machine, so that it can tell which of their processes are gone. */
export async function nodesOfMachine(store: Store, kind: NodeKind, hostname: string): Promise<Node[]> {
  return store.knex<Node>('nodes').where({ kind, hostname });
}

/** Removes nodes that have long been silent. */
export async function removeExpiredNodes(store: Store): Promise<void> {
  await store
    .knex('nodes')
    .whereRaw("heartbeat_at < clock_timestamp() - ? * interval '1 millisecond'", [NODE_EXPIRY_MS * 6])
    .delete();
}
