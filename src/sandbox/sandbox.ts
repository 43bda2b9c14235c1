/**
 * Runs untrusted programs with the least access that they need.
 *
 * ```ts
 * // Once per process.
 * const sandbox = await openSandbox(config.SANDBOX, log, secretPaths(config, toolEnvironment()), runDir);
 * const confinement = sandbox.confine({
 *   readOnly: [['/srv/data/handlers/4f3c', '/handler']],
 *   writable: [['/srv/data/run/h-17', '/run/handler']],
 *   network: false,
 *   tmpMb: 64,
 * });
 * await confinement.handOver('/srv/data/run/h-17');
 * const running = spawnLimited({
 *   confinement,
 *   file: confinement.inside('/srv/data/handlers/4f3c'), // "/handler" with namespaces; unchanged without
 *   cwd: '/',
 *   env: { EDGE_SOCKET: confinement.inside('/srv/data/run/h-17/socket') },
 *   ...
 * });
 * await running.pid; // the process id on this machine
 * await running.kill(); // with all its processes
 * ```
 */
import { closeSync } from 'node:fs';
import { toError } from '../errors.js';
import type { SANDBOX_MODES } from '../settings.js';
import type { Logger } from '../util/log.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { Cgroups } from './cgroups.js';
import { Confinement, type EmptyNetwork, type SandboxLevel, type View } from './confinement.js';
import { openEmptyNetwork } from './empty-network.js';
import { hiddenPaths } from './hidden-paths.js';
import { type ConfiningLevel, findFault, NOTHING } from './probe.js';
import { killAbandoned, RunUser } from './run-user.js';

/**
 * The setting of the operator: `auto` takes the best level that works, `limits` only as root; `required` does not start
 * without `landlock` at least; `landlock` takes that level and no other; `off` leaves `limits`.
 */
export type SandboxMode = (typeof SANDBOX_MODES)[number];

/** Untrusted programs cannot be run as SANDBOX requires, or only as root. The message has the reason and solution. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

/** Confines the untrusted programs of this process. */
export class Sandbox {
  readonly level: SandboxLevel;
  readonly #hidden: readonly string[];
  readonly #records: string | undefined;
  /** Undefined where this process has no control groups. */
  readonly groups: Cgroups | undefined;
  readonly #emptyNetwork: EmptyNetwork | undefined;

  /**
   * @param hidden paths below system folders that programs must not see
   * @param records for `RunUser`
   * @param emptyNetwork for `Confinement`
   */
  constructor(
    level: SandboxLevel,
    hidden: readonly string[],
    records: string | undefined,
    groups?: Cgroups | undefined,
    emptyNetwork?: EmptyNetwork,
  ) {
    this.level = level;
    this.#hidden = hidden;
    this.#records = records;
    this.groups = groups;
    this.#emptyNetwork = emptyNetwork;
  }

  /** Whether programs run as other users with real paths, so that their files must be accessible to these users. */
  get needsReachablePaths(): boolean {
    return HAS_UNTRUSTED_USERS && this.level !== 'namespaces';
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
    return new Confinement(this.level, runUser, view, this.#hidden, this.#emptyNetwork);
  }
}

/**
 * Finds the best level that works on this machine, by running a program at it, and logs it.
 * @param secret files and folders that programs must not see even if they are below /usr
 * @param records folder for records of the users of programs, for `killAbandoned`; none by default
 * @throws SandboxError when none works that SANDBOX allows, or programs would run as root, or, unasked, as this user
 */
export async function openSandbox(
  mode: SandboxMode,
  log: Logger,
  secret: readonly string[] = [],
  records?: string,
): Promise<Sandbox> {
  if (process.getuid?.() === 0 && !HAS_UNTRUSTED_USERS) throw new SandboxError(ONLY_AS_ROOT);
  const hidden = hiddenPaths(secret);
  const groups = openGroups(log);
  const faults: string[] = [];
  for (const level of LEVELS[mode]) {
    const sandbox = new Sandbox(level, hidden, records, groups);
    const fault = await findFault(level, sandbox.confine(NOTHING));
    if (fault === undefined) {
      log.info({ sandbox: level }, ['sandbox works', ...faults].join('; '));
      if (level !== 'namespaces') return sandbox;
      return (await sharing(hidden, records, groups, log)) ?? sandbox;
    }
    faults.push(`the level \`${level}\` does not work here: ${fault}. ${HELP[level]}`);
  }
  if (mode === 'required' || mode === 'landlock')
    throw new SandboxError(`SANDBOX is "${mode}", but ${faults.join('; ')}`);
  // With the user of this process, programs could read all its data.
  if (mode === 'auto' && !HAS_UNTRUSTED_USERS) throw new SandboxError(unconfined(faults));
  const exposed = HAS_UNTRUSTED_USERS
    ? 'untrusted programs run as users of their own, and can read what every user can'
    : 'untrusted programs can read what this process can';
  const why = mode === 'off' ? [`sandbox switched off: ${exposed}`] : [`no sandbox, ${exposed}`, ...faults];
  log.warn({ sandbox: 'limits' }, why.join('; '));
  return new Sandbox('limits', hidden, records, groups);
}

/** A sandbox with an empty network that programs share. Undefined when that fails: then only starts take longer. */
async function sharing(
  hidden: readonly string[],
  records: string | undefined,
  groups: Cgroups | undefined,
  log: Logger,
): Promise<Sandbox | undefined> {
  let network: EmptyNetwork = [];
  try {
    network = await openEmptyNetwork(HAS_UNTRUSTED_USERS ? new RunUser(records) : undefined);
    const sandbox = new Sandbox('namespaces', hidden, records, groups, network);
    const fault = await findFault('namespaces', sandbox.confine(NOTHING));
    if (fault !== undefined) throw new Error(fault);
    return sandbox;
  } catch (error) {
    for (const descriptor of network) closeSync(descriptor);
    log.warn(
      { err: toError(error) },
      'each program without a network gets one of its own, because none can be shared',
    );
    return undefined;
  }
}

function openGroups(log: Logger): Cgroups | undefined {
  const groups = Cgroups.open();
  if (groups instanceof Cgroups) {
    log.info('control groups limit memory, processes and CPU time');
    return groups;
  }
  log.debug({ problem: groups.problem }, 'no control groups; memory and CPU time are checked twice a second');
  return undefined;
}

/** The levels to try, best first. */
const LEVELS: Readonly<Record<SandboxMode, readonly ConfiningLevel[]>> = {
  auto: ['namespaces', 'landlock'],
  required: ['namespaces', 'landlock'],
  landlock: ['landlock'],
  off: [],
};

const HELP: Readonly<Record<ConfiningLevel, string>> = {
  namespaces: HAS_UNTRUSTED_USERS
    ? 'In a container it needs CAP_SYS_ADMIN, CAP_SYS_PTRACE, and a seccomp profile that allows mount and clone'
    : 'It needs user namespaces: see the sysctls kernel.unprivileged_userns_clone and user.max_user_namespaces, and on ' +
      'Ubuntu 24.04 or newer an AppArmor profile for dist/native/launcher that allows `userns`',
  landlock: 'It needs Linux 5.19 or newer with Landlock, see `lsm=` among the parameters of the kernel',
};

/** Only an operator can know that the code is to be trusted. */
function unconfined(faults: readonly string[]): string {
  return (
    `Nothing keeps untrusted programs from the data of this process here: ${faults.join('; ')}. ` +
    'Make one of these work, or start it as root, which runs each program as a user of its own. ' +
    'If you trust all code that is deployed, and all crates that it uses, set SANDBOX=off'
  );
}

const ONLY_AS_ROOT =
  'Untrusted programs would run as root: this process may not start programs as other users. ' +
  'Start it as another user, or give it the capabilities CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID, and ' +
  'in a container at least seven user ids.';
