/** Checks whether a level of the sandbox works here, by running a program at it that tries forbidden operations. */
import { randomUUID } from 'node:crypto';
import { access } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';
import type { Confinement, SandboxLevel } from './confinement.js';
import { type LimitedProcess, spawnLimited } from './limited-process.js';

/** The levels that confine. */
export type ConfiningLevel = Exclude<SandboxLevel, 'limits'>;

const PROBE_TIMEOUT_MS = 20_000;
const POLL_MS = 2;
/** Fail with the first operation that is possible but forbidden. */
const SCRIPTS: Readonly<Record<ConfiningLevel, string>> = {
  namespaces: `
    [ $$ = 1 ] || { echo "it shares the processes of this machine"; exit 1; }
    [ ! -e /proc/cmdline ] || { echo "it sees the machine in /proc"; exit 1; }
    [ ! -e /etc/passwd ] || { echo "it sees the files of this machine"; exit 1; }
    for folder in / /usr /dev; do
      ! (: > "$folder/probe") 2> /dev/null || { echo "it can write to $folder"; exit 1; }
    done
    while read -r name _; do
      case $name in lo:|Inter-*|face) ;; *) echo "it shares the network: $name"; exit 1 ;; esac
    done < /proc/self/net/dev
    : > "/tmp/$MARK" || { echo "it cannot write to its /tmp"; exit 1; }`,
  landlock: `
    ! (: < /etc/passwd) 2> /dev/null || { echo "it can read the files of this machine"; exit 1; }
    ! (: < "/proc/$PARENT/environ") 2> /dev/null || { echo "it can look into other processes"; exit 1; }
    ! (: > "/tmp/$MARK") 2> /dev/null || { echo "it can write to /tmp"; exit 1; }`,
};
const NOT_ROOT = '[ "$(id -u)" != 0 ] || { echo "it runs as root"; exit 1; }';
const WAIT = 'read -r _ || :';

/** How a program is confined that may reach nothing. */
export const NOTHING = {
  ...{ readOnly: [], writable: [], network: false, tmpMb: 1 },
  changesAttributes: false,
} as const;

/** @returns why the level does not work, as the end of a sentence; undefined when it does */
export async function findFault(
  level: ConfiningLevel,
  confinement: Confinement,
): Promise<string | undefined> {
  const mark = `probe-${randomUUID()}`;
  let program: LimitedProcess;
  try {
    program = spawnLimited({
      confinement,
      file: '/bin/sh',
      args: ['-c', [SCRIPTS[level], NOT_ROOT, WAIT].join('\n')],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', MARK: mark, PARENT: String(process.pid) },
      limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    return toError(error).message;
  }
  const stdin = program.stdio[0] as Writable;
  stdin.on('error', () => undefined); // it has ended
  const output = [program.stdout, program.stderr].map((stream) => (stream ? text(stream) : ''));
  const timer = setTimeout(() => void program.kill(), PROBE_TIMEOUT_MS);
  try {
    const fault = level === 'namespaces' ? await checkTmpAccess(program, mark) : undefined;
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
    await program.kill();
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
