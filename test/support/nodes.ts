/** Nodes without a process, as if other machines had registered them. */
import { randomUUID } from 'node:crypto';
import type { Store } from '../../src/store/database.js';
import { type NodeKind, registerNode } from '../../src/store/nodes.js';

interface NodeFields {
  readonly id?: string;
  readonly info?: Readonly<Record<string, unknown>>;
}

/** Registers one, which is alive for as long as one is without a heartbeat. @returns its id */
export async function addNode(
  store: Store,
  kind: NodeKind,
  { id = randomUUID(), info = {} }: NodeFields = {},
): Promise<string> {
  await registerNode(store, { id, kind, hostname: 'elsewhere', pid: 1, pid_namespace: '', info });
  return id;
}
