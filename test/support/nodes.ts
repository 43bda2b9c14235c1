/** Nodes without a process, as if other machines had registered them. */
import { randomUUID } from 'node:crypto';
import type { Store } from '../../src/store/database.js';
import { type NodeKind, registerNode } from '../../src/store/nodes.js';

interface NodeFields {
  readonly id?: string;
  readonly info?: Readonly<Record<string, unknown>>;
}

/** Registers one, which stays alive for as long as a test can take. @returns its id */
export async function addNode(
  store: Store,
  kind: NodeKind,
  { id = randomUUID(), info = {} }: NodeFields = {},
): Promise<string> {
  await registerNode(store, { id, kind, hostname: 'elsewhere', pid: 1, pid_namespace: '', info });
  await keepAlive(store, id);
  return id;
}

/** Keeps a node alive that has no heartbeat: its last one is in the future. */
export async function keepAlive(store: Store, id: string): Promise<void> {
  await store
    .knex('nodes')
    .where({ id })
    .update({ heartbeat_at: new Date(Date.now() + 3600_000) });
}
