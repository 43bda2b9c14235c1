/**
 * A server that lies, in a process of its own. It stands for another machine: its work yields to all that is measured.
 * Started with the name of the lie; sends the port that it listens on.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
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

if (process.argv[1] === PROGRAM) {
  const lie = LIES.find(({ name }) => name === process.argv[2]);
  if (!lie) throw new Error(`No lie has the name ${process.argv[2]}`);
  const { port } = await startLyingServer(lie);
  process.send?.(port);
  process.on('disconnect', () => process.exit());
}
