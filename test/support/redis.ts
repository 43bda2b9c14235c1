/** A real Redis for tests, on a free port and a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { eventually } from './eventually.js';
import { freePort } from './postgres.js';
import { tempDir } from './temp.js';

export interface TestRedis {
  readonly url: string;
  /** Starts it again on the same port, empty. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}

/** Starts a server. */
export async function startRedis(): Promise<TestRedis> {
  const folder = await tempDir('redis');
  const port = await freePort();
  let server: ChildProcess | undefined;
  const start = async () => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    server = spawn('redis-server', [...args, '--maxmemory-policy', 'noeviction', '--dir', folder.path], {
      stdio: 'ignore',
    });
    await eventually(() => reachable(port));
  };
  const stop = async () => {
    const running = server;
    server = undefined;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGTERM');
    await ended;
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    stop,
    remove: async () => {
      await stop();
      await folder.remove();
    },
  };
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
