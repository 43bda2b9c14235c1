/**
 * The socket and the executable of one handler. In a sandbox the socket is in its private /tmp, so that the handler
 * cannot write to any disk of this machine; without one it is in a folder of its own.
 */
import { randomUUID } from 'node:crypto';
import { copyFile, link, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Confinement } from '../sandbox/confinement.js';
import type { Logger } from '../util/log.js';
import { removeSocketFolder, socketOf } from './socket-folders.js';

export interface HandlerFiles {
  /** Paths as the handler sees them. */
  readonly executable: string;
  readonly socket: string;
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
  return confinement.hasMonitor
    ? inSandbox(confinement.inside(executable))
    : inFolder(confinement, executable, socketOf(runDir, instanceId), log);
}

/** The name is random, so that a process that gets the same process id later cannot have such a socket. */
function inSandbox(executable: string): HandlerFiles {
  const socket = `/tmp/handler-${randomUUID()}.sock`;
  return {
    executable,
    socket,
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
