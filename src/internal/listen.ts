/** Listens on a Unix socket that only one process of a machine may serve. */
import { readdir, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { join } from 'node:path';

/**
 * Listens on a socket. Removes the stale socket of a killed process.
 * @throws Error when a living process serves it
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  await refuseSecond(path);
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // Whoever can enter its folder may connect.
    server.listen({ path, writableAll: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Removes the sockets in a folder that no process serves: killed ones have left them behind. */
export async function removeUnserved(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!(await isServed(path))) await rm(path, { force: true });
  }
}

/** @throws Error when a living process serves the socket */
export async function refuseSecond(path: string): Promise<void> {
  if (!(await isServed(path))) return;
  throw new Error(`Another process serves ${path}: one DATA_DIR has one actor host. End the other first.`);
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}
