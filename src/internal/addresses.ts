/** Where the processes of a kind are reached that serve others of this product. */
import { access } from 'node:fs/promises';
import { hostname } from 'node:os';
import { awaitLiveNodes } from '../reconcile/nodes.js';
import type { Store } from '../store/database.js';
import type { Node, NodeKind } from '../store/nodes.js';

/** The address of a process. */
export type ProcessAddress =
  | { readonly socketPath: string }
  | { readonly hostname: string; readonly port: string };

/** A live process, and where it is reached; undefined: not from this machine, or not yet. */
export interface AddressedNode {
  readonly id: string;
  readonly hostname: string;
  readonly address: ProcessAddress | undefined;
}

/** The live processes of a kind that can be reached, those on this machine first: their sockets need no network. */
export async function addressesOf(store: Store, kind: NodeKind): Promise<ProcessAddress[]> {
  const addresses = (await addressedNodes(store, kind)).flatMap(({ address }) => address ?? []);
  const isLocal = (address: ProcessAddress) => 'socketPath' in address;
  return [...addresses.filter(isLocal), ...addresses.filter((address) => !isLocal(address))];
}

/** All live processes of a kind. */
export async function addressedNodes(store: Store, kind: NodeKind): Promise<AddressedNode[]> {
  const nodes = await awaitLiveNodes(store, kind);
  return Promise.all(
    nodes.map(async (node) => ({ id: node.id, hostname: node.hostname, address: await addressOf(node) })),
  );
}

async function addressOf(node: Node): Promise<ProcessAddress | undefined> {
  const { socket, url } = node.info;
  if (node.hostname === hostname() && typeof socket === 'string' && (await exists(socket)))
    return { socketPath: socket };
  if (typeof url !== 'string') return undefined;
  const { hostname: host, port } = new URL(url);
  return { hostname: host.replace(/^\[|\]$/g, ''), port };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
