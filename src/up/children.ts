/** The child processes of `npm run up`: start, readiness and end. */
import { type ChildProcess, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { killGroup } from '../sandbox/kill.js';
import { FATAL, parseLogLine } from './log-line.js';

/** A process that has been started. */
export interface Child {
  readonly name: string;
  /** Resolves with its ready message; rejects when it ends before. */
  readonly ready: Promise<Readonly<Record<string, unknown>>>;
  /** Resolves with the exit reason if it ends unexpectedly. */
  readonly failed: Promise<string>;
  /** Asks it to end, kills it and its process group after the limit, and resolves when it has ended. */
  stop(limitMs?: number): Promise<void>;
  /** Kills it and its process group; `stop` then resolves at once. */
  kill(): void;
}

const STOP_LIMIT_MS = 50_000;

/**
 * Starts a program in Node.
 * @param entry its file, relative to dist/
 * @param onLine called with each line of its log
 */
export function startChild(
  name: string,
  entry: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void,
): Child {
  // A separate process group: Ctrl-C reaches only this process, which stops the children in order.
  const { child, ended } = launch(entry, env, onLine, true);
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    child.on('message', (message) => {
      if (typeof message === 'object' && 'type' in message && message.type === 'ready')
        resolve({ ...message });
    });
    void ended.then((how) => reject(new Error(`${name} did not start: ${how}`)));
  });
  let stopping = false;
  return {
    name,
    ready,
    failed: new Promise((resolve) => {
      void ended.then((how) => {
        if (!stopping) resolve(how);
      });
    }),
    stop: async (limitMs = STOP_LIMIT_MS) => {
      stopping = true;
      await stopChild(child, ended, limitMs);
    },
    kill: () => {
      if (isRunning(child)) killGroup(child.pid);
    },
  };
}

/**
 * Runs an entry to completion.
 * @throws Error unless it succeeds
 */
export async function runToEnd(
  name: string,
  entry: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void,
): Promise<void> {
  const { child, ended } = launch(entry, env, onLine, false);
  const how = await ended;
  if (child.exitCode !== 0) throw new Error(`${name} ${how}`);
}

/** How long to wait for its last output after it has ended: a process that it started may hold the pipe open. */
const LAST_LINES_MS = 1_000;

function launch(
  entry: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void,
  detached: boolean,
): { child: ChildProcess; ended: Promise<string> } {
  const child = fork(fileURLToPath(new URL(`../../${entry}`, import.meta.url)), {
    env,
    detached,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let reason: string | undefined;
  for (const input of [child.stdout, child.stderr]) {
    if (!input) continue;
    createInterface({ input }).on('line', (line) => {
      const logged = parseLogLine(line);
      if (logged && logged.level >= FATAL) reason = logged.message;
      onLine(line);
    });
  }
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    const end = () => {
      const how = child.signalCode
        ? `ended by ${child.signalCode}`
        : `ended with exit code ${child.exitCode}`;
      resolve(reason === undefined ? how : `${how}: ${reason}`);
    };
    child.once('close', end);
    child.once('exit', () => setTimeout(end, LAST_LINES_MS));
  });
  return { child, ended };
}

async function stopChild(child: ChildProcess, ended: Promise<string>, limitMs: number): Promise<void> {
  if (!isRunning(child)) return;
  child.kill('SIGTERM');
  const force = setTimeout(() => killGroup(child.pid), limitMs);
  await ended;
  clearTimeout(force);
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
