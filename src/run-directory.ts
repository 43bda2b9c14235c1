/** The folder for Unix sockets of one DATA_DIR. */
import { createHash } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDataDirectory } from './data-directory.js';

/** The kernel takes socket paths of up to 107 bytes; our longest file name is well under 50. */
const MAX_FOLDER_BYTES = 55;

/**
 * Makes (if needed) and returns the folder for sockets: `DATA_DIR/run`, or a folder in the system's temporary folder
 * when that path is too long for a socket.
 */
export async function runDirectory(dataDir: string): Promise<string> {
  await makeDataDirectory(dataDir);
  const own = join(dataDir, 'run');
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const folder = Buffer.byteLength(own) <= MAX_FOLDER_BYTES ? own : join(tmpdir(), `edge-gateway-${digest}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Whoever could connect to a handler's socket could bypass the gateway.
  await chmod(folder, 0o700);
  return folder;
}

/**
 * The folder in which the actor host has the socket for handlers, and nothing else: handlers in a sandbox see it as a
 * whole, so that they find the socket of an actor host that was started again.
 */
export async function serviceFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'services');
  // Handlers may run as other users. On this machine nobody else gets past the folder above.
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await chmod(folder, 0o755);
  return folder;
}

/** The socket on which handlers of this machine call services. */
export function handlerSocket(runDir: string): string {
  return join(runDir, 'services', 'services.sock');
}

/** The socket on which the management API of this machine reaches the actor host. */
export function actorHostSocket(runDir: string): string {
  return join(runDir, 'actors.sock');
}
