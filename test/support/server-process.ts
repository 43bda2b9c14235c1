/** A server program of a test, which can be stopped at once and started again. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { eventually } from './eventually.js';
import { descendantsOf } from './process-state.js';

export interface ServerProcess {
  /** Resolves when its port accepts connections. */
  start(): Promise<void>;
  /** Kills it; whoever was connected notices. */
  stop(): Promise<void>;
  /** Stops it where it is: connections stay open, and nothing answers. */
  hang(): void;
  /** It goes on. */
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
      // Servers with a process for each client: those would go on.
      const sessions = descendantsOf(child.pid);
      child.kill('SIGKILL');
      for (const { pid } of sessions) kill(pid, 'SIGKILL');
      await ended;
    },
  };
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
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
