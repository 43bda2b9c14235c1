/**
 * A network without interfaces, which the untrusted programs of a root process share that have no network, at the
 * level `namespaces`: to make one takes the kernel longer than all else at the start of a program. In it they can have
 * Unix sockets only, and Landlock refuses the abstract ones of others; where it does not, each program has its own.
 */
import { chmodSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Confinement } from './confinement.js';
import { spawnLimited } from './limited-process.js';

/**
 * @param confinement of a program that has a network of its own
 * @returns its file descriptor, open as long as this process
 * @throws when the program has not started, or /proc/[pid]/net cannot be closed
 */
export async function openEmptyNetwork(confinement: Confinement): Promise<number> {
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
    if (pid === undefined) throw new Error('the program with an empty network has not started');
    closeTables(`/proc/${pid}/net`);
    return openSync(`/proc/${pid}/ns/net`, 'r');
  } finally {
    await program.kill();
  }
}

/** Programs would see the sockets of each other in `unix`. The kernel keeps the modes for each network. */
function closeTables(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    chmodSync(join(folder, entry.name), 0o400);
}
