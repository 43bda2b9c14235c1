/** The folder for Unix sockets of one DATA_DIR. */
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { preparedProcess } from '../config.js';
import { isErrno } from '../util/errno.js';
import {
  ACTOR_HOST_USER,
  HAS_UNTRUSTED_USERS,
  makePassable,
  PRODUCT_GROUP,
  SERVICE_GROUP,
} from '../util/untrusted-users.js';
import { makeDataDirectory } from './data-directory.js';
import { folderOutside, reachableFolder } from './reachable-folder.js';

/** Folders that processes of the product can enter, and no others: each is written to by its owner alone. */
const FOR_PRODUCT = HAS_UNTRUSTED_USERS ? 0o750 : 0o700;
/** Socket paths are limited to 107 bytes; the longest one below is under 50. */
const MAX_FOLDER_BYTES = 55;

/**
 * Creates the folder for sockets if needed and returns it: `DATA_DIR/run`, or one outside when handlers cannot access
 * that or its path is too long for a socket. Untrusted programs can traverse it to their own sockets.
 */
export async function runDirectory(dataDir: string): Promise<string> {
  const prepared = preparedProcess();
  if (prepared) return prepared.runDir;
  await makeDataDirectory(dataDir);
  const reachable = await reachableFolder(dataDir, 'run');
  const isShort = Buffer.byteLength(reachable) <= MAX_FOLDER_BYTES;
  const folder = isShort ? reachable : await shortFolder(dataDir);
  // Restricted, because a client that connects to a handler's socket bypasses the gateway.
  await makePassable(folder);
  const [metrics] = metricsFolders(folder);
  await makeFolder(metrics, FOR_PRODUCT, [0, PRODUCT_GROUP]);
  return folder;
}

/** The folders of the sockets on which processes serve their metrics: of most of them, and of the actor host. */
export function metricsFolders(runDir: string): readonly [string, string] {
  return [join(runDir, 'metrics'), dirname(actorHostSocket(runDir))];
}

/** @throws Error when another user has made the folder */
async function shortFolder(dataDir: string): Promise<string> {
  if (process.getuid?.() === 0) return join(await folderOutside(dataDir), 'run');
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const folder = join(tmpdir(), `edge-gateway-${digest}`);
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    // Every user of the machine can make this folder, and links of this name.
    const stats = await lstat(folder);
    if (!stats.isDirectory() || stats.uid !== process.getuid?.() || (stats.mode & 0o077) !== 0) {
      throw new Error(
        `${folder}, for the sockets of ${dataDir}, is not a private folder of this user: check who made it, and ` +
          'remove it, or set DATA_DIR to a shorter path.',
      );
    }
  }
  return folder;
}

/**
 * The folder of the sockets on which the actor host and the processes of services answer handlers, without other files:
 * it is mounted into the sandbox of handlers, so that they see new sockets.
 */
export async function serviceFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'services');
  // Handlers may run as other users. The parent folder excludes all others. Not to be listed: a handler knows the names
  // of the sockets it is told. Each process of a service has a folder of its own there.
  await makeFolder(folder, 0o711);
  return folder;
}

const HANDLER_SOCKET = 'services.sock';

/** The socket on which handlers of this machine call services. They look for others in its folder. */
export function handlerSocket(runDir: string): string {
  return join(runDir, 'services', HANDLER_SOCKET);
}

/** The same socket where the actor host serves it: in a folder of its own, to which a link leads. */
export function servedHandlerSocket(runDir: string): string {
  return join(runDir, 'services', 'host', HANDLER_SOCKET);
}

/** Makes the folders that the actor host writes to, and that link, where neither is. */
export async function makeActorHostFolders(runDir: string): Promise<void> {
  await makeFolder(dirname(actorHostSocket(runDir)), FOR_PRODUCT, [ACTOR_HOST_USER, PRODUCT_GROUP]);
  const socket = servedHandlerSocket(runDir);
  await makeFolder(dirname(socket), 0o711, [ACTOR_HOST_USER, ACTOR_HOST_USER]);
  await symlink(relative(join(runDir, 'services'), socket), handlerSocket(runDir));
}

/** The folder of the sockets to which the channels of processes of services are opened, for the actor host only. */
export async function channelFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'channels');
  await makeFolder(folder, 0o700, [ACTOR_HOST_USER, ACTOR_HOST_USER]);
  return folder;
}

/** The folder of the sockets on which processes of services serve object files, for the actor host only. */
export async function objectFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'objects');
  await makeFolder(folder, HAS_UNTRUSTED_USERS ? 0o711 : 0o700);
  return folder;
}

/** The folder of the nonces of tokens (`src/secrets/service-token.ts`): services read it, handlers cannot reach it. */
export async function tokenFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'tokens');
  await makeFolder(folder, HAS_UNTRUSTED_USERS ? 0o750 : 0o700, [0, SERVICE_GROUP]);
  return folder;
}

/** The folder of the sockets on which gateways serve other processes of this product. */
export async function gatewayFolder(runDir: string): Promise<string> {
  const folder = join(runDir, 'gateways');
  await makeFolder(folder, FOR_PRODUCT, [0, PRODUCT_GROUP]);
  return folder;
}

/** The socket of the actor host for the management API on this machine. */
export function actorHostSocket(runDir: string): string {
  return join(runDir, 'actors', 'actors.sock');
}

/** Also changes the mode that an earlier version has given it. Root has made it for a process that it has prepared. */
async function makeFolder(
  folder: string,
  mode: number,
  owner?: readonly [user: number, group: number],
): Promise<void> {
  if (!makesFolders()) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (owner && HAS_UNTRUSTED_USERS) await chown(folder, ...owner);
  await chmod(folder, mode);
}

/** False in a process for which root has made them. */
function makesFolders(): boolean {
  return HAS_UNTRUSTED_USERS || !preparedProcess();
}
