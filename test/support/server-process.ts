/** A server program of a test, which can be killed and restarted. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { eventually } from './eventually.js';
import { descendantsOf } from './process-state.js';
import type { TempDir } from './temp.js';

export interface ServerProcess {
  /** Resolves when its port accepts connections. */
  start(): Promise<void>;
  /** Kills it; its clients are disconnected. */
  stop(): Promise<void>;
  /** Suspends it: connections stay open, without responses. */
  hang(): void;
  /** Resumes it. */
  wake(): void;
}

/** Describes a program that listens on a port of this machine; it is not started yet. */
export function serverProcess(
  command: string,
  args: readonly string[],
  port: number,
  options: SpawnOptions = {},
): ServerProcess {
  let running: ChildProcess | undefined;
  const signal = (name: NodeJS.Signals) => {
    if (!running?.pid) return;
    for (const pid of [running.pid, ...descendantsOf(running.pid).map((child) => child.pid)]) kill(pid, name);
  };
  return {
    hang: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    start: async () => {
      const child = spawn(command, args, { stdio: 'ignore', ...options });
      running = child;
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', reject);
      });
      await eventually(() => reachable(port));
    },
    stop: async () => {
      const child = running;
      running = undefined;
      if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      // Also suspends the processes for single clients.
      const sessions = descendantsOf(child.pid);
      child.kill('SIGKILL');
      for (const { pid } of sessions) kill(pid, 'SIGKILL');
      await ended;
    },
  };
}

/** A server whose folder is removed with it. */
export function withFolder(
  server: ServerProcess,
  folder: TempDir,
): ServerProcess & { remove(): Promise<void> } {
  return {
    ...server,
    remove: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already ended.
  }
}

function reachable(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
