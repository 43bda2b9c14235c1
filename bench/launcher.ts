/**
 * What does it cost that the launcher stands in front of a program? One that writes at once, with it and without: the
 * time until its first byte is here. What it costs to end a program, and the time until it is certain that nothing is
 * left of it, delay no start, and are not in these figures.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Confinement, SANDBOX_LEVELS, type SandboxLevel } from '../src/sandbox/confinement.js';
import { spawnLimited } from '../src/sandbox/limited-process.js';
import { RunUser } from '../src/sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS } from '../src/util/untrusted-users.js';
import { tempDir } from '../test/support/temp.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';
import { measureInTurn, medianOf } from './support/rounds.js';

const ROUNDS = 200;
const [PROGRAM, ...ARGS] = ['/bin/echo', 'here'] as const;

export const launcher: Benchmark = async () => {
  const folder = await tempDir('launcher');
  const given = join(folder.path, 'given');
  await mkdir(given);
  const view = {
    readOnly: [[given, '/given'] as const],
    writable: [],
    network: false,
    tmpMb: 64,
    changesAttributes: true,
  };
  // Each program has a user of its own; choosing it is not what is measured.
  const under = (level: SandboxLevel) => async () => {
    const user = HAS_UNTRUSTED_USERS ? new RunUser(undefined) : undefined;
    user?.claim();
    return launch(new Confinement(level, user, view, []));
  };
  try {
    const rounds = await measureInTurn(ROUNDS, {
      plain: bare,
      limits: under('limits'),
      landlock: under('landlock'),
      namespaces: under('namespaces'),
    });
    const ms = (name: SandboxLevel | 'plain') => medianOf(rounds, name, (took) => took);
    return SANDBOX_LEVELS.map((level) => ({
      question: `what the launcher adds to the start of a program, at the level \`${level}\``,
      measured: `until its first byte, median of ${ROUNDS}: ${round(ms(level))} ms against ${round(ms('plain'))} ms`,
      value: median(rounds.map((round) => round[level] - round.plain)),
      unit: 'ms',
      bar: { atMost: 2 },
    }));
  } finally {
    await folder.remove();
  }
};

async function bare(): Promise<number> {
  const from = performance.now();
  const child = spawn(PROGRAM, ARGS, { env: {}, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  const took = performance.now() - from;
  await ended;
  return took;
}

async function launch(confinement: Confinement): Promise<number> {
  const from = performance.now();
  const program = spawnLimited({
    confinement,
    file: PROGRAM,
    args: ARGS,
    cwd: '/',
    env: {},
    limits: { memoryMb: 1024, fileMb: 64, openFiles: 256, processes: 64 },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (!program.stdout) throw new Error('the program has no output');
  await Promise.race([once(program.stdout, 'data'), program.ended]);
  const took = performance.now() - from;
  const end = await program.ended;
  if (end.code !== 0) throw new Error(`the program ended with ${end.code ?? end.signal}`);
  await program.kill();
  return took;
}

await runAlone(import.meta.url, launcher);
