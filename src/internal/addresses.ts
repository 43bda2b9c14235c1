/** Where the processes of a kind are reached that serve others of this product. */
import { access } from 'node:fs/promises';
import { hostname } from 'node:os';
import { awaitLiveNodes } from '../reconcile/nodes.js';
import type { Store } from '../store/database.js';
import type { NodeKind } from '../store/nodes.js';

/** The address of a process. */
export type Address = { readonly socketPath: string } | { readonly hostname: string; readonly port: string };

/** The live processes of a kind, those on this machine first: their sockets need no network. */
export async function addressesOf(store: Store, kind: NodeKind): Promise<Address[]> {
  const local: Address[] = [];
  const remote: Address[] = [];
  for (const node of await awaitLiveNodes(store, kind)) {
    const { socket, url } = node.info;
    if (node.hostname === hostname() && typeof socket === 'string' && (await exists(socket))) {
      local.push({ socketPath: socket });
    } else if (typeof url === 'string') {
      const { hostname: host, port } = new URL(url);
      remote.push({ hostname: host.replace(/^\[|\]$/g, ''), port });
    }
  }
  return [...local, ...remote];
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
