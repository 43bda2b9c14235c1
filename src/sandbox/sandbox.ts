/**
 * Runs untrusted programs with the least access that they need, by bubblewrap where it works.
 *
 * ```ts
 * // Once per process.
 * const sandbox = await openSandbox(config.SANDBOX, searchPath(), log, secretPaths(config, toolEnvironment()), runDir);
 * const confinement = sandbox.confine({
 *   readOnly: [['/srv/data/handlers/4f3c', '/handler']],
 *   writable: [['/srv/data/run/h-17', '/run/handler']],
 *   network: false,
 *   tmpMb: 64,
 * });
 * await confinement.handOver('/srv/data/run/h-17');
 * const running = spawnLimited({
 *   confinement,
 *   file: confinement.inside('/srv/data/handlers/4f3c'), // "/handler"; unchanged at the level `limits`
 *   cwd: '/',
 *   env: { EDGE_SOCKET: confinement.inside('/srv/data/run/h-17/socket') },
 *   ...
 * });
 * await running.pid; // the process id on this machine
 * await running.kill(); // with all its processes
 * ```
 */
import { realpathSync } from 'node:fs';
import type { SANDBOX_MODES } from '../settings.js';
import type { Logger } from '../util/log.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { type Bubblewrap, BubblewrapConfinement } from './bubblewrap.js';
import { type Confinement, confinedByUser, UNCONFINED, type View } from './confinement.js';
import { findBubblewrap, findProgram } from './probe.js';
import { killAbandoned, RunUser } from './run-user.js';

/**
 * The setting of the operator: `auto` uses bubblewrap if it works, `required` does not start without it, `off` does
 * not use it.
 */
export type SandboxMode = (typeof SANDBOX_MODES)[number];

/** The level in force: namespaces and resource limits, or resource limits only. */
export type SandboxLevel = 'bubblewrap' | 'limits';

/** Untrusted programs cannot be run as SANDBOX requires, or only as root. The message has the reason and solution. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

/** Confines the untrusted programs of this process. */
export class Sandbox {
  readonly #bubblewrap: Bubblewrap | undefined;
  readonly #setpriv: string | undefined;
  readonly #records: string | undefined;

  /**
   * @param setpriv its path, for the level `limits`
   * @param records for `RunUser`
   */
  constructor(bubblewrap: Bubblewrap | undefined, setpriv: string | undefined, records: string | undefined) {
    this.#bubblewrap = bubblewrap;
    this.#setpriv = setpriv;
    this.#records = records;
  }

  get level(): SandboxLevel {
    return this.#bubblewrap ? 'bubblewrap' : 'limits';
  }

  /** Whether programs run as other users with real paths, so that their files must be accessible to these users. */
  get needsReachablePaths(): boolean {
    return HAS_UNTRUSTED_USERS && !this.#bubblewrap;
  }

  /** Kills untrusted programs of killed processes, whose users are free to be used again then. */
  async killAbandoned(): Promise<void> {
    if (this.#records !== undefined) await killAbandoned(this.#records);
  }

  /**
   * @param user as root: the user id of an earlier run, to reuse its files; a fresh one by default
   */
  confine(view: View, user?: number): Confinement {
    const runUser = HAS_UNTRUSTED_USERS ? new RunUser(this.#records, user) : undefined;
    if (this.#bubblewrap) return new BubblewrapConfinement(this.#bubblewrap, view, runUser);
    return runUser ? confinedByUser(runUser, this.#setpriv) : UNCONFINED;
  }
}

/**
 * Finds the best confinement on this machine, by running a program in it, and logs it.
 * @param path where programs are looked up, as in the variable PATH
 * @param secret files and folders that programs inside must not see even if they are below /usr
 * @param records folder for records of the users of programs, for `killAbandoned`; none by default
 * @throws SandboxError when bubblewrap is required and does not work, or programs would run as root
 */
export async function openSandbox(
  mode: SandboxMode,
  path: string,
  log: Logger,
  secret: readonly string[] = [],
  records?: string,
): Promise<Sandbox> {
  if (process.getuid?.() === 0 && !HAS_UNTRUSTED_USERS) throw new SandboxError(ONLY_AS_ROOT);
  const found = mode === 'off' ? { problem: undefined } : await findBubblewrap(path, secret, records);
  if (!('problem' in found)) {
    log.info({ sandbox: 'bubblewrap' }, 'sandbox works');
    return new Sandbox(found, found.setpriv, records);
  }
  const { problem } = found;
  if (mode === 'required') throw new SandboxError(`SANDBOX is "required", but ${problem}`);
  const exposed = HAS_UNTRUSTED_USERS
    ? 'untrusted programs run as users of their own, and can read what every user can'
    : 'untrusted programs can read what this process can';
  log.warn(
    { sandbox: 'limits' },
    problem === undefined ? `sandbox switched off: ${exposed}` : `no sandbox, ${exposed}: ${problem}`,
  );
  const setpriv = findProgram('setpriv', path);
  // Other users may not be able to follow the link.
  return new Sandbox(undefined, setpriv && realpathSync(setpriv), records);
}

const ONLY_AS_ROOT =
  'Untrusted programs would run as root: this process may not start programs as other users. ' +
  'Start it as another user, or give it the capabilities CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID, and ' +
  'in a container more than one user id.';
