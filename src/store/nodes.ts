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
const NODE_EXPIRY = `interval '${NODE_EXPIRY_MS} milliseconds'`;
/** When no node at all has been heard of for this long, the reason is not with the nodes. Several heartbeats. */
const SILENCE = "interval '6 seconds'";
/** SQL, true for rows of `nodes` that are alive. */
export const IS_LIVE_NODE = `heartbeat_at > clock_timestamp() - ${NODE_EXPIRY}`;

export async function registerNode(
  store: Store,
  node: Omit<Node, 'started_at' | 'heartbeat_at'>,
): Promise<void> {
  await store.knex('nodes').insert({ ...node, info: JSON.stringify(node.info) });
  store.announce('node', node.id);
}

/**
 * Says that a node is alive. When no node has been heard of for a while, PostgreSQL was away: then the first to be heard
 * again speaks for all that were alive before, which get as much time as ever to be heard themselves.
 * @returns false when the row is gone, because the node was taken for dead
 */
export async function heartbeat(store: Store, id: string): Promise<boolean> {
  const { rows } = await store.knex.raw<{ rows: { id: string }[] }>(
    `WITH latest AS (SELECT max(heartbeat_at) AS heard_at FROM nodes)
     UPDATE nodes SET heartbeat_at = clock_timestamp() FROM latest
      WHERE id = ?
         OR (heard_at < clock_timestamp() - ${SILENCE} AND heartbeat_at > heard_at - ${NODE_EXPIRY})
     RETURNING id`,
    [id],
  );
  return rows.some((row) => row.id === id);
}

/** True when there are nodes, and none of them was heard of lately: PostgreSQL was away, or all have died at once. */
export async function isSilent(store: Store): Promise<boolean> {
  const { rows } = await store.knex.raw<{ rows: { silent: boolean | null }[] }>(
    `SELECT max(heartbeat_at) < clock_timestamp() - ${SILENCE} AS silent FROM nodes`,
  );
  return rows[0]?.silent === true;
}

/** Removes a node and, with it, all it has observed. */
export async function removeNode(store: Store, id: string): Promise<void> {
  await store.knex('nodes').where({ id }).delete();
  store.announce('node', id);
}

/** The nodes that count as alive at this moment; `presentNodes` also copes with a PostgreSQL that was away. */
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
