/**
 * The socket and the executable of one handler. With namespaces the socket is in its own /tmp, so that the handler
 * cannot write to any disk of this machine; without them it is in a folder that stands in for /tmp.
 */
import { randomUUID } from 'node:crypto';
import { copyFile, link, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Confinement } from '../../sandbox/confinement.js';
import type { Logger } from '../../util/log.js';
import { removeSocketFolder, socketOf } from './socket-folders.js';

export interface HandlerFiles {
  /** Paths as the handler sees them. */
  readonly executable: string;
  readonly socket: string;
  /** Where it may write. */
  readonly tmp: string;
  /** The same on a disk of this machine; undefined when it is in memory. */
  readonly folder: string | undefined;
  /** That of the handler, with these files. */
  readonly confinement: Confinement;
  /** The path of the socket for the front. @param pid process id of the handler */
  socketOutside(pid: number): string;
  /** Removes the files after the handler has ended. */
  remove(): Promise<void>;
}

/** @param executable its path on this machine */
export async function makeHandlerFiles(
  confinement: Confinement,
  executable: string,
  runDir: string,
  instanceId: number,
  log: Logger,
): Promise<HandlerFiles> {
  return confinement.hasNamespaces
    ? inNamespaces(confinement, executable)
    : inFolder(confinement, executable, socketOf(runDir, instanceId), log);
}

/** The name is random, so that a process that gets the same process id later cannot have such a socket. */
function inNamespaces(confinement: Confinement, executable: string): HandlerFiles {
  const socket = `/tmp/handler-${randomUUID()}.sock`;
  return {
    executable: confinement.inside(executable),
    socket,
    tmp: '/tmp',
    folder: undefined,
    confinement,
    socketOutside: (pid) => `/proc/${pid}/root${socket}`,
    remove: async () => undefined,
  };
}

async function inFolder(
  confinement: Confinement,
  executable: string,
  socket: string,
  log: Logger,
): Promise<HandlerFiles> {
  const folder = dirname(socket);
  await mkdir(folder, { mode: 0o700 });
  const files = {
    executable,
    socket,
    tmp: folder,
    folder,
    confinement: confinement.withFolder(folder),
    socketOutside: () => socket,
    remove: () => removeSocketFolder(folder, log),
  };
  if (!confinement.user) return files;
  // Linked or copied, because its user cannot enter the folder of the executable.
  const own = join(folder, 'handler');
  try {
    await link(executable, own).catch(() => copyFile(executable, own));
    await confinement.handOver(folder);
  } catch (error) {
    await files.remove();
    throw error;
  }
  return { ...files, executable: own };
}
