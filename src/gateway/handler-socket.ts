/**
 * Where a handler has its socket: in its sandbox, in the /tmp that is its own, so that it can write to no disk of this
 * machine; without a sandbox in a folder of its own.
 */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from '../log.js';
import type { SandboxLevel } from '../sandbox/sandbox.js';
import { removeSocketFolder, socketOf } from './socket-folders.js';

/** The place of one socket. */
export interface HandlerSocket {
  /** What the handler calls it. */
  readonly inside: string;
  /** What the fronts call it, when the handler has this process id. */
  outside(pid: number): string;
  /** Removes what is left of it when the handler has ended. */
  remove(): Promise<void>;
}

export async function makeHandlerSocket(
  level: SandboxLevel,
  runDir: string,
  instanceId: number,
  log: Logger,
): Promise<HandlerSocket> {
  return level === 'bubblewrap' ? inSandbox() : inFolder(socketOf(runDir, instanceId), log);
}

/** The name is not to be guessed: a process id can be given to somebody else, who then must not have such a socket. */
function inSandbox(): HandlerSocket {
  const inside = `/tmp/handler-${randomUUID()}.sock`;
  return { inside, outside: (pid) => `/proc/${pid}/root${inside}`, remove: async () => undefined };
}

async function inFolder(path: string, log: Logger): Promise<HandlerSocket> {
  await mkdir(dirname(path), { mode: 0o700 });
  return { inside: path, outside: () => path, remove: () => removeSocketFolder(dirname(path), log) };
}
