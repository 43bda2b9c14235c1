/**
 * A network without interfaces, which the untrusted programs of a root process share that have no network, at the
 * level `namespaces`: to make one takes the kernel longer than all else at the start of a program. In it they can have
 * Unix sockets only, and Landlock refuses the abstract ones of others; where it does not, each program has its own.
 */
import { openSync } from 'node:fs';
import type { Confinement } from './confinement.js';
import { spawnLimited } from './limited-process.js';

/**
 * @param confinement of a program that has a network of its own
 * @returns its file descriptor, open as long as this process; undefined when the program has ended too soon
 */
export async function openEmptyNetwork(confinement: Confinement): Promise<number | undefined> {
  const program = spawnLimited({
    confinement,
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
    return pid === undefined ? undefined : openSync(`/proc/${pid}/ns/net`, 'r');
  } finally {
    await program.kill();
  }
}
