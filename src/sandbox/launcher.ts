/** The native program that confines an untrusted program and becomes it: `rust/launcher`. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Identity, Plan, Users } from '../contracts/launcher.js';

export const LAUNCHER = fileURLToPath(new URL('../../native/launcher', import.meta.url));

/**
 * The plan of a program of the product that answers strangers or backends. It has the files of its user.
 * @param streams how many descriptors it has
 * @param identity null: the user of this process
 */
export function ownProgram(
  streams: number,
  identity: Identity | null,
  connectsTo: Users | null = null,
): Plan {
  return {
    ...{ parent: process.pid, streams, cwd: '/', nice: null, limits: null, identity, cgroup: null },
    ...{ keepsAttributes: false, access: null, namespaces: null, own: { sockets: 'unix', connectsTo } },
  };
}

/**
 * The command line that runs a program according to a plan.
 * @throws Error when the launcher was not built
 */
export function launched(plan: Plan, file: string, args: readonly string[]): [string, string[]] {
  if (!existsSync(LAUNCHER)) throw new Error(`there is no ${LAUNCHER}: run \`npm run build\``);
  return [LAUNCHER, [JSON.stringify(plan), file, ...args]];
}
