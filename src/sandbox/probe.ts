/** Checks whether bubblewrap works here by running a program in it that tries forbidden operations. */
import { randomUUID } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';
import { type Bubblewrap, BubblewrapConfinement, hiddenPaths } from './bubblewrap.js';
import { FilterFile } from './filter-file.js';
import { type LimitedProcess, spawnLimited } from './limited-process.js';
import { RunUser } from './run-user.js';
import { seccompFilter } from './seccomp.js';

const PROBE_TIMEOUT_MS = 20_000;
const POLL_MS = 2;
/** Fails with the first operation that is possible but forbidden. */
const PROBE_SCRIPT = `
  [ $$ = 1 ] || { echo "it shares the processes of this machine"; exit 1; }
  [ "$(id -u)" != 0 ] || { echo "it runs as root"; exit 1; }
  [ ! -e /etc/passwd ] || { echo "it sees the files of this machine"; exit 1; }
  for folder in / /usr /dev; do
    ! (: > "$folder/probe") 2> /dev/null || { echo "it can write to $folder"; exit 1; }
  done
  while read -r name _; do
    case $name in lo:|Inter-*|face) ;; *) echo "it shares the network: $name"; exit 1 ;; esac
  done < /proc/net/dev
  : > "/tmp/$MARK" || { echo "it cannot write to its /tmp"; exit 1; }
  read -r _ || :
`;

/**
 * @param path where programs are looked up
 * @param secret files and folders that programs inside must not see
 * @param records for `RunUser`
 * @returns its configuration, or the problem and its solution, as the end of a sentence
 */
export async function findBubblewrap(
  path: string,
  secret: readonly string[],
  records: string | undefined,
): Promise<Bubblewrap | { readonly problem: string }> {
  const isRoot = process.getuid?.() === 0;
  const bwrap = findProgram('bwrap', path);
  if (bwrap === undefined)
    return { problem: 'bubblewrap is not there: install it (`apt-get install bubblewrap`).' };
  const setpriv = isRoot ? findProgram('setpriv', path) : undefined;
  if (isRoot && setpriv === undefined)
    return { problem: '`setpriv` is not there: install it (`apt-get install util-linux`).' };

  const filter = seccompFilter();
  const found = { bwrap, setpriv, filter: filter && new FilterFile(filter), hidden: hiddenPaths(secret) };
  const fault = await findFault(found, records);
  if (fault === undefined) return found;
  found.filter?.close();
  return {
    problem:
      `bubblewrap does not work here: ${fault}. ` +
      (isRoot
        ? 'In a container it needs also CAP_SYS_ADMIN, CAP_SYS_PTRACE, and a seccomp profile that allows mount and clone.'
        : 'It needs user namespaces: see the sysctls kernel.unprivileged_userns_clone and user.max_user_namespaces, and on ' +
          'Ubuntu 24.04 or newer an AppArmor profile for bwrap that allows `userns`.'),
  };
}

export function findProgram(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns the first fault; undefined when there is none */
async function findFault(bubblewrap: Bubblewrap, records: string | undefined): Promise<string | undefined> {
  const mark = `probe-${randomUUID()}`;
  const confinement = new BubblewrapConfinement(
    bubblewrap,
    { readOnly: [], writable: [], network: false, tmpMb: 1 },
    bubblewrap.setpriv === undefined ? undefined : new RunUser(records),
  );
  const program = spawnLimited({
    confinement,
    file: '/bin/sh',
    args: ['-c', PROBE_SCRIPT],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', MARK: mark },
    limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const stdin = program.stdio[0] as Writable;
  stdin.on('error', () => undefined); // it has ended
  const output = [program.stdout, program.stderr].map((stream) => (stream ? text(stream) : ''));
  const timer = setTimeout(() => void program.kill(), PROBE_TIMEOUT_MS);
  try {
    const fault = await checkTmpAccess(program, mark);
    if (fault !== undefined) await program.kill();
    // The script waits for the end of its input.
    stdin.end();
    const { code, signal } = await program.ended;
    if (fault !== undefined) return fault;
    const printed = await Promise.all(output);
    return code === 0 ? undefined : (firstOf(printed) ?? `it ended with ${signal ?? `exit code ${code}`}`);
  } catch (error) {
    return firstOf((await Promise.all(output)).toReversed()) ?? toError(error).message;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Checks that this process can access its /tmp, where handlers have their sockets: that requires the right to trace
 * processes of other users. Waits until the marker file exists or the program has ended.
 */
async function checkTmpAccess({ pid, ended }: LimitedProcess, name: string): Promise<string | undefined> {
  const first = await pid;
  if (first === undefined) return undefined;
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  ended.then(over, over);
  while (!isOver) {
    try {
      await access(`/proc/${first}/root/tmp/${name}`);
      return undefined;
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) return `its /tmp cannot be reached (${toError(error).message})`;
    }
    await delay(POLL_MS);
  }
  return undefined;
}

function firstOf(texts: readonly string[]): string | undefined {
  return texts.map((text) => text.trim()).find(Boolean);
}
