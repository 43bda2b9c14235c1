/**
 * A network without interfaces, which the untrusted programs of a process share that have no network, at the level
 * `namespaces`: to make one takes the kernel longer than all else at the start of a program. In it they can have Unix
 * sockets only. Landlock refuses the abstract ones of others, but not to see that a name of one is taken; where it
 * refuses nothing of them, each program has its own network.
 */
import { chmodSync, closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { Confinement, type EmptyNetwork } from './confinement.js';
import { spawnLimited } from './limited-process.js';
import { NOTHING } from './probe.js';
import type { RunUser } from './run-user.js';

/**
 * @param user as root: of the program that makes it
 * @returns open as long as this process
 * @throws when the program has not started, or its tables cannot be closed
 */
export async function openEmptyNetwork(user: RunUser | undefined): Promise<EmptyNetwork> {
  const program = spawnLimited({
    confinement: new Confinement('namespaces', user, NOTHING, [], 'first'),
    file: '/bin/sh',
    // It waits for the end of its input.
    args: ['-c', 'read -r _'],
    cwd: '/',
    env: {},
    limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  try {
    const pid = await program.pid;
    if (pid === undefined) throw new Error('the program with an empty network has not started');
    closeTables(`/proc/${pid}/net`);
    const namespaces = HAS_UNTRUSTED_USERS ? ['net'] : ['net', 'user'];
    return openAll(namespaces.map((namespace) => `/proc/${pid}/ns/${namespace}`));
  } finally {
    await program.kill();
  }
}

/** Opens all of these, or none. */
function openAll(paths: readonly string[]): number[] {
  const opened: number[] = [];
  try {
    for (const path of paths) opened.push(openSync(path, 'r'));
  } catch (thrown) {
    for (const fd of opened) closeSync(fd);
    throw thrown;
  }
  return opened;
}

/**
 * Programs would see the sockets of each other in `unix`. The kernel keeps the modes for each network. Not as root, the
 * files belong to the user of the programs, but their /proc is read-only.
 */
function closeTables(folder: string): void {
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0);
}
