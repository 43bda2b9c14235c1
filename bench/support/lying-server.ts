/**
 * A server that lies, in a process of its own. It stands for another machine: its work yields to all that is measured,
 * and it sends no more than a network carries, because a core that it keeps busy would be missed by what is measured.
 * Started with the name of the lie; sends the port that it listens on.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Lie, startLyingServer } from '../../test/support/lies/lie.js';
import { OTHER_LIES } from '../../test/support/lies/others.js';
import { POSTGRES_LIES } from '../../test/support/lies/postgres.js';
import { REDIS_LIES } from '../../test/support/lies/redis.js';

export const LIES: readonly Lie[] = [...POSTGRES_LIES, ...REDIS_LIES, ...OTHER_LIES];

const PROGRAM = fileURLToPath(import.meta.url);

/** A process whose server lies. */
export interface LyingProcess {
  readonly port: number;
  close(): Promise<void>;
}

export async function startLyingProcess({ name }: Lie): Promise<LyingProcess> {
  const child = spawn('chrt', ['--idle', '0', process.execPath, PROGRAM, name], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [port] = (await once(child, 'message')) as [number];
  return { port, close: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Bytes per millisecond: 1 Gbit/s. */
const RATE = 125_000;

/** Limits what all sockets of this process send together. */
function limitRate(): void {
  const write = Socket.prototype._write;
  let free = performance.now();
  Socket.prototype._write = function (this: Socket, chunk: Buffer, encoding, callback) {
    free = Math.max(free, performance.now()) + chunk.length / RATE;
    const wait = free - performance.now();
    write.call(this, chunk, encoding, (error) => {
      if (wait < 1) callback(error);
      else void delay(wait).then(() => callback(error));
    });
  };
}

if (process.argv[1] === PROGRAM) {
  const lie = LIES.find(({ name }) => name === process.argv[2]);
  if (!lie) throw new Error(`No lie has the name ${process.argv[2]}`);
  limitRate();
  const { port } = await startLyingServer(lie);
  process.send?.(port);
  process.on('disconnect', () => process.exit());
}
