/**
 * What does it cost that the launcher stands in front of a program? One that writes at once, with it and without: the
 * time until its first byte is here. What it costs to end a program, and the time until it is certain that nothing is
 * left of it, delay no start, and are not in these figures; they delay the result of a compile, and are in those.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { buildEnvironment, buildView, INSIDE } from '../src/build/build-view.js';
import { reachableToolchain } from '../src/build/reachable-toolchain.js';
import { HANDLER_PROFILE } from '../src/build/rustc.js';
import { findToolchain, type Toolchain } from '../src/build/toolchain.js';
import {
  Confinement,
  type EmptyNetwork,
  SANDBOX_LEVELS,
  type SandboxLevel,
} from '../src/sandbox/confinement.js';
import { openEmptyNetwork } from '../src/sandbox/empty-network.js';
import { spawnLimited } from '../src/sandbox/limited-process.js';
import type { ConfiningLevel } from '../src/sandbox/probe.js';
import { lowerSessionPriority, niceness } from '../src/sandbox/process-priority.js';
import { RunUser } from '../src/sandbox/run-user.js';
import { createLogger } from '../src/util/log.js';
import { HAS_UNTRUSTED_USERS, makePassable } from '../src/util/untrusted-users.js';
import { CONFINING } from '../test/support/hostile/attacks.js';
import { tempDir } from '../test/support/temp.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, type Row, round } from './support/report.js';
import { measureInTurn, medianOf } from './support/rounds.js';

const ROUNDS = 200;
const COMPILES = 40;
const [PROGRAM, ...ARGS] = ['/bin/echo', 'here'] as const;

const COMPILE_LIMITS = { memoryMb: 4096, fileMb: 1024, openFiles: 1024, processes: 512, cpuSeconds: 60 };

export const launcher: Benchmark = async () => [...(await starts()), ...(await compiles())];

async function starts(): Promise<Row[]> {
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
  const network = await sharedNetwork();
  // Each program has a user of its own; choosing it is not what is measured.
  const under = (level: SandboxLevel) => async () => {
    const user = HAS_UNTRUSTED_USERS ? new RunUser(undefined) : undefined;
    user?.claim();
    return launch(new Confinement(level, user, view, [], network));
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
}

/** One real run of rustc, of the smallest source; toolchain, arguments and priority are those without the launcher. */
async function compiles(): Promise<Row[]> {
  const folder = await tempDir('launcher-compiles');
  try {
    await makePassable(folder.path);
    const copies = join(folder.path, 'toolchain');
    await mkdir(copies);
    await makePassable(copies);
    const log = createLogger('bench', 'fatal', []);
    const toolchain = await reachableToolchain(await findToolchain(HANDLER_PROFILE), true, copies, log);
    const inNewFolder = (compile: (work: string) => Promise<number>) => async () => {
      const work = await mkdtemp(join(folder.path, 'work-'));
      await writeFile(join(work, 'handler.rs'), 'fn main() {}\n');
      return compile(work);
    };
    const network = await sharedNetwork();
    const under = (level: SandboxLevel) => inNewFolder((work) => compileIn(work, level, toolchain, network));
    const rounds = await measureInTurn(COMPILES, {
      plain: inNewFolder((work) => compileBare(work, toolchain)),
      landlock: under('landlock'),
      namespaces: under('namespaces'),
    });
    const ms = (name: 'plain' | ConfiningLevel) => round(medianOf(rounds, name, (took) => took));
    return CONFINING.map((level) => ({
      question: `what the launcher adds to a compile, at the level \`${level}\``,
      measured: `rustc of an empty \`main\`, median of ${COMPILES}: ${ms(level)} ms against ${ms('plain')} ms`,
      value: median(rounds.map((round) => round[level] - round.plain)),
      unit: 'ms',
      bar: { atMost: 5 },
    }));
  } finally {
    await folder.remove();
  }
}

/** What a process makes once, when it starts. */
function sharedNetwork(): Promise<EmptyNetwork> {
  return openEmptyNetwork(HAS_UNTRUSTED_USERS ? new RunUser(undefined) : undefined);
}

const RUSTC_ARGS = [...HANDLER_PROFILE, '-o', 'handler', 'handler.rs'];

async function compileBare(work: string, toolchain: Toolchain): Promise<number> {
  const env = buildEnvironment(toolchain, {}, work, new Confinement('landlock', undefined, undefined, []));
  const from = performance.now();
  const child = spawn(toolchain.rustc, RUSTC_ARGS, {
    ...{ cwd: work, env, detached: true },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  if (child.pid !== undefined) setPriority(child.pid, niceness());
  lowerSessionPriority(child);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`rustc ended with ${code}`);
  return performance.now() - from;
}

async function compileIn(
  work: string,
  level: SandboxLevel,
  toolchain: Toolchain,
  network: EmptyNetwork,
): Promise<number> {
  const user = HAS_UNTRUSTED_USERS ? new RunUser(undefined) : undefined;
  user?.claim();
  const view = buildView(toolchain, { readOnly: [], writable: [[work, INSIDE.build]] });
  const confinement = new Confinement(level, user, view, [], network);
  await confinement.handOver(work);
  const env = buildEnvironment(toolchain, {}, work, confinement);
  const from = performance.now();
  const program = spawnLimited({
    ...{ confinement, env, file: confinement.inside(toolchain.rustc), args: RUSTC_ARGS },
    cwd: confinement.inside(work),
    limits: COMPILE_LIMITS,
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const { code } = await program.ended;
  await program.kill();
  await program.closed;
  const took = performance.now() - from;
  if (code !== 0) throw new Error(`rustc ended with ${code}`);
  return took;
}

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
