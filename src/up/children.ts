/** The processes that `npm run up` starts: until they are ready, while they run, and to their end. */
import { type ChildProcess, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { killGroup } from '../limited-process.js';

/** A process that has been started. */
export interface Child {
  readonly name: string;
  /** Resolves with the message by which it reports ready; rejects when it ends instead. */
  readonly ready: Promise<Readonly<Record<string, unknown>>>;
  /** Resolves with how it ended, if nobody asked it to. */
  readonly failed: Promise<string>;
  /** Asks it to end, and resolves when it has. */
  stop(): Promise<void>;
  /** Ends it and its process group at once, for `stop` to find it ended. */
  kill(): void;
}

const STOP_LIMIT_MS = 50_000;

/**
 * Starts the entry `dist/<entry>.js`.
 * @param onLine gets its log, line by line
 */
export function startChild(
  name: string,
  entry: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void,
): Child {
  const child = fork(fileURLToPath(new URL(`../../${entry}.js`, import.meta.url)), {
    env,
    // A process group of its own: Ctrl-C reaches only us, and we end the children in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout) createInterface({ input: child.stdout }).on('line', onLine);

  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) =>
      resolve(signal ? `ended by ${signal}` : `ended with exit code ${code}`),
    );
  });
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
    stop: async () => {
      stopping = true;
      await stopChild(child, ended);
    },
    kill: () => {
      if (isRunning(child)) killGroup(child.pid);
    },
  };
}

/** Runs an entry that ends by itself. @throws Error when it ends with anything but success */
export async function runToEnd(
  name: string,
  entry: string,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void,
): Promise<void> {
  const child = fork(fileURLToPath(new URL(`../../${entry}.js`, import.meta.url)), {
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
  const code = await new Promise((resolve) => child.once('exit', resolve));
  if (code !== 0) throw new Error(`${name} failed with exit code ${String(code)}`);
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (!isRunning(child)) return;
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(force);
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
