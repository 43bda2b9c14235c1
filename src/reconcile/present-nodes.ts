/** Which nodes there are, also in the moments after PostgreSQL was away, when none could say that it is alive. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../store/database.js';
import { isSilent, liveNodes, type Node, type NodeKind } from '../store/nodes.js';
import { HEARTBEAT_MS } from './node.js';

/** The next heartbeat comes by then, of whoever it is: the first speaks for all. */
const LONGEST_WAIT_MS = HEARTBEAT_MS + 1_000;
const LOOK_EVERY_MS = 100;

/** The live nodes of a kind. Waits for a heartbeat when none has come for so long that PostgreSQL must have been away. */
export async function presentNodes(store: Store, kind: NodeKind): Promise<Node[]> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  while ((await isSilent(store)) && performance.now() < deadline) await delay(LOOK_EVERY_MS);
  return liveNodes(store, kind);
}
