/** This process as the others see it: registered, alive, and gone when it stops. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from '../log.js';
import { isAlive } from '../process-liveness.js';
import type { Store } from '../store/database.js';
import {
  heartbeat,
  type NodeKind,
  nodesOfMachine,
  registerNode,
  removeExpiredNodes,
  removeNode,
} from '../store/nodes.js';
import { Periodically } from './changes.js';

/** Pause between the heartbeats of a node. */
export const HEARTBEAT_MS = 2_000;

/** A registered node. */
export interface NodeRegistration {
  readonly id: string;
  /** Stops the heartbeat and removes the node. */
  leave(): Promise<void>;
}

/**
 * Registers this process and keeps it registered.
 * @param info what others need to know of it
 * @param onLost called when the node had been taken for dead and was registered anew: its observations are gone
 */
export async function joinNodes(
  store: Store,
  kind: NodeKind,
  info: Readonly<Record<string, unknown>>,
  log: Logger,
  onLost: () => void = () => undefined,
): Promise<NodeRegistration> {
  const node = { id: randomUUID(), kind, hostname: hostname(), pid: process.pid, info };
  await removeDeadNeighbours(store, kind);
  await registerNode(store, node);
  const beating = new Periodically(
    HEARTBEAT_MS,
    async () => {
      if (!(await heartbeat(store, node.id))) {
        await registerNode(store, node);
        onLost();
      }
      await removeExpiredNodes(store);
    },
    (error) => log.warn({ err: error }, 'heartbeat failed'),
  );
  return {
    id: node.id,
    leave: async () => {
      await beating.stop();
      await removeNode(store, node.id).catch((error: unknown) =>
        log.warn({ err: error }, 'could not take leave; the node expires by itself'),
      );
    },
  };
}

/** A process of this machine that was killed could not remove itself: nobody should have to wait until it expires. */
async function removeDeadNeighbours(store: Store, kind: NodeKind): Promise<void> {
  for (const { id, pid } of await nodesOfMachine(store, kind, hostname())) {
    if (pid === process.pid || !isAlive(pid)) await removeNode(store, id);
  }
}
