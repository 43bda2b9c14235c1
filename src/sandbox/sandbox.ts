/**
 * Runs programs of strangers so that they see and reach no more than they must: by bubblewrap where it works.
 *
 * ```ts
 * // Once in a process.
 * const sandbox = await openSandbox(config.SANDBOX, searchPath(), log, secretPaths(config, toolEnvironment()));
 * const confinement = sandbox.confine({
 *   readOnly: [['/srv/data/handlers/4f3c', '/handler']],
 *   writable: [['/srv/data/run/h-17', '/run/handler']],
 *   network: false,
 *   tmpMb: 64,
 * });
 * await confinement.handOver('/srv/data/run/h-17');
 * const running = spawnLimited({
 *   confinement,
 *   file: confinement.inside('/srv/data/handlers/4f3c'), // "/handler", and with level `limits` the path as it is
 *   cwd: '/',
 *   env: { EDGE_SOCKET: confinement.inside('/srv/data/run/h-17/socket') },
 *   ...
 * });
 * await running.pid; // that of the handler on this machine
 * await running.kill(); // nothing of it is left
 * ```
 */
import type { SANDBOX_MODES } from '../config.js';
import type { Logger } from '../log.js';
import { type Bubblewrap, BubblewrapConfinement } from './bubblewrap.js';
import { type Confinement, UNCONFINED, type View } from './confinement.js';
import { findBubblewrap } from './probe.js';

/** What the operator asks for: `auto` takes what there is, `required` does not start without, `off` does without. */
export type SandboxMode = (typeof SANDBOX_MODES)[number];

/** What is in force: namespaces and resource limits, or resource limits alone. */
export type SandboxLevel = 'bubblewrap' | 'limits';

/** SANDBOX=required, and there is no sandbox. The message says what does not work, and what to do. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

/** What confines the programs of strangers in this process. */
export class Sandbox {
  constructor(private readonly bubblewrap: Bubblewrap | undefined) {}

  get level(): SandboxLevel {
    return this.bubblewrap ? 'bubblewrap' : 'limits';
  }

  /**
   * @param user as whom the program runs when we are root, if it is to go on with files of an earlier run; a user of
   * its own otherwise
   */
  confine(view: View, user?: number): Confinement {
    return this.bubblewrap ? new BubblewrapConfinement(this.bubblewrap, view, user) : UNCONFINED;
  }
}

/**
 * Finds out, by really doing it, what confines programs on this machine, and logs it.
 * @param path where programs are looked for, as in the variable PATH
 * @param secret files and folders that programs inside must not see even if they are below /usr, which is seen
 * @throws SandboxError when it is required and does not work
 */
export async function openSandbox(
  mode: SandboxMode,
  path: string,
  log: Logger,
  secret: readonly string[] = [],
): Promise<Sandbox> {
  if (mode === 'off') {
    log.warn(
      { sandbox: 'limits' },
      'sandbox switched off: code of strangers can read what this process can read',
    );
    return new Sandbox(undefined);
  }
  const found = await findBubblewrap(path, secret);
  if ('problem' in found) {
    if (mode === 'required') throw new SandboxError(`SANDBOX is "required", but ${found.problem}`);
    log.warn(
      { sandbox: 'limits' },
      `no sandbox, code of strangers can read what this process can read: ${found.problem}`,
    );
    return new Sandbox(undefined);
  }
  log.info({ sandbox: 'bubblewrap' }, 'sandbox works');
  return new Sandbox(found);
}
