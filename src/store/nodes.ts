/** The table `nodes`: the live processes. */
import type { Preparation } from '../model/preparation.js';
import type { Store } from './database.js';

export type NodeKind = 'web' | 'worker' | 'gateway' | 'actor-host';

/** A row. */
export interface Node {
  readonly id: string;
  readonly kind: NodeKind;
  readonly hostname: string;
  readonly pid: number;
  /** Where its process id is known. */
  readonly pid_namespace: string;
  /** Data for other processes, e.g. the toolchain of a worker. */
  readonly info: Readonly<Record<string, unknown>>;
  readonly started_at: Date;
  readonly heartbeat_at: Date;
}

/** A node has expired when its last heartbeat is older than this. */
const NODE_EXPIRY_MS = 10_000;
const NODE_EXPIRY = `interval '${NODE_EXPIRY_MS} milliseconds'`;
/** When no node had a heartbeat for this long, several times the interval, PostgreSQL was unavailable. */
const OUTAGE = "interval '6 seconds'";
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
 * Records a heartbeat. The first one after an outage of PostgreSQL renews all nodes that were alive before it, so that
 * each has the full time for its own.
 * @returns false when the row was deleted, because the node had expired
 */
export async function heartbeat(store: Store, id: string): Promise<boolean> {
  const { rows } = await store.knex.raw<{ rows: { id: string }[] }>(
    `WITH latest AS (SELECT max(heartbeat_at) AS last_at FROM nodes)
     UPDATE nodes SET heartbeat_at = clock_timestamp() FROM latest
      WHERE id = ?
         OR (last_at < clock_timestamp() - ${OUTAGE} AND heartbeat_at > last_at - ${NODE_EXPIRY})
     RETURNING id`,
    [id],
  );
  return rows.some((row) => row.id === id);
}

/** True when there are nodes and none has a recent heartbeat: PostgreSQL was unavailable, or all ended at once. */
export async function areHeartbeatsMissing(store: Store): Promise<boolean> {
  const { rows } = await store.knex.raw<{ rows: { missing: boolean | null }[] }>(
    `SELECT max(heartbeat_at) < clock_timestamp() - ${OUTAGE} AS missing FROM nodes`,
  );
  return rows[0]?.missing === true;
}

/** Replaces the data of a node for other processes. */
export async function updateNodeInfo(store: Store, { id, info }: Pick<Node, 'id' | 'info'>): Promise<void> {
  await store
    .knex('nodes')
    .where({ id })
    .update({ info: JSON.stringify(info) });
}

/** The preparations of the live workers, without which they cannot compile handlers. */
export async function livePreparations(store: Store): Promise<Preparation[]> {
  return preparationsOf(await liveNodes(store, 'worker'));
}

/** The preparations that workers have published. */
export function preparationsOf(workers: readonly Node[]): Preparation[] {
  return workers.flatMap(({ info }) => (info['preparing'] ?? []) as Preparation[]);
}

/** Removes a node and its observations. */
export async function removeNode(store: Store, id: string): Promise<void> {
  await store.knex('nodes').where({ id }).delete();
  store.announce('node', id);
}

/** The nodes that are alive now. Just after an outage of PostgreSQL, use `awaitLiveNodes`. */
export async function liveNodes(store: Store, kind: NodeKind): Promise<Node[]> {
  return store.knex<Node>('nodes').where({ kind }).whereRaw(IS_LIVE_NODE).orderBy('started_at');
}

export async function countLiveNodes({ knex }: Store, kind: NodeKind): Promise<number> {
  const [row] = await knex('nodes')
    .where({ kind })
    .whereRaw(IS_LIVE_NODE)
    .count<{ count: number }[]>('* as count');
  return row?.count ?? 0;
}

/** Nodes whose process ids are those of one namespace: there it can be checked whether they still run. */
export async function nodesOfNamespace(
  store: Store,
  kind: NodeKind,
  namespace: Pick<Node, 'hostname' | 'pid_namespace'>,
): Promise<Node[]> {
  return store.knex<Node>('nodes').where({ kind, ...namespace });
}

/** Removes nodes that expired a while ago. */
export async function removeExpiredNodes(store: Store): Promise<void> {
  await store
    .knex('nodes')
    .whereRaw("heartbeat_at < clock_timestamp() - ? * interval '1 millisecond'", [NODE_EXPIRY_MS * 6])
    .delete();
}
