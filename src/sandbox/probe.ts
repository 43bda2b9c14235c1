/** Finds out whether bubblewrap works here, by running a program in it that looks around. */
import { randomUUID } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { type LimitedProcess, spawnLimited } from '../limited-process.js';
import { type Bubblewrap, BubblewrapConfinement, hiddenPaths } from './bubblewrap.js';
import { FilterFile } from './filter-file.js';
import { seccompFilter } from './seccomp.js';

const PROBE_LIMIT_MS = 20_000;
const LOOK_AGAIN_MS = 2;
/** It found no fault. */
const DONE = '';
/** Ends with the first thing it can do and should not. */
const LOOK_AROUND = `
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
 * @param path where programs are looked for
 * @param secret files and folders that programs inside must not see, wherever they are
 * @returns how to call it, or what does not work and what to do, as the end of a sentence
 */
export async function findBubblewrap(
  path: string,
  secret: readonly string[],
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
  const said = await lookAround(found);
  if (said === DONE) return found;
  found.filter?.close();
  return {
    problem:
      `bubblewrap does not work here: ${said}. ` +
      (isRoot
        ? 'In a container it needs CAP_SYS_ADMIN, CAP_SYS_PTRACE, and a seccomp profile that allows mount and clone.'
        : 'It needs user namespaces: see the sysctls kernel.unprivileged_userns_clone and user.max_user_namespaces, and on ' +
          'Ubuntu 24.04 or newer an AppArmor profile for bwrap that allows `userns`.'),
  };
}

function findProgram(name: string, path: string): string | undefined {
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

/** @returns the first fault */
async function lookAround(bubblewrap: Bubblewrap): Promise<string> {
  const mark = `probe-${randomUUID()}`;
  const confinement = new BubblewrapConfinement(
    bubblewrap,
    { readOnly: [], writable: [], network: false, tmpMb: 1 },
    undefined,
  );
  const program = spawnLimited({
    confinement,
    file: '/bin/sh',
    args: ['-c', LOOK_AROUND],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', MARK: mark },
    limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const stdin = program.stdio[0] as Writable;
  stdin.on('error', () => undefined); // it has ended
  const said = [program.stdout, program.stderr].map((stream) => (stream ? text(stream) : ''));
  const timer = setTimeout(() => void program.kill(), PROBE_LIMIT_MS);
  try {
    const fault = await lookInto(program, mark);
    if (fault !== undefined) await program.kill();
    // It waits for this.
    stdin.end();
    const { code, signal } = await program.ended;
    if (fault !== undefined) return fault;
    const words = await Promise.all(said);
    return code === 0 ? DONE : (firstOf(words) ?? `it ended with ${signal ?? `exit code ${code}`}`);
  } catch (error) {
    return firstOf((await Promise.all(said)).toReversed()) ?? toError(error).message;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Whether we reach into its /tmp, where handlers have their sockets: not without the right to look at other users' processes.
 * Waits for a file there, or its end.
 */
async function lookInto({ pid, ended }: LimitedProcess, name: string): Promise<string | undefined> {
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
    } catch (thrown) {
      const error = toError(thrown);
      if (!('code' in error) || error.code !== 'ENOENT')
        return `its /tmp cannot be reached (${error.message})`;
    }
    await delay(LOOK_AGAIN_MS);
  }
  return undefined;
}

function firstOf(words: readonly string[]): string | undefined {
  return words.map((word) => word.trim()).find(Boolean);
}
