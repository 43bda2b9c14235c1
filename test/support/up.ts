/** `npm run up`, as a program that is started, read and ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cp, readdir, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { eventually } from './eventually.js';
import { call } from './http.js';
import { freePort } from './ports.js';
import { isRunning, processesWith } from './process-state.js';
import { BUILD_CACHE, makeBuildCache } from './processes.js';
import { type TempDir, tempDir } from './temp.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** What `scripts/up.mjs` runs once all is built; relative to the root. */
export const BUILT_UP = 'dist/src/processes/up.js';
export const START_LIMIT_MS = 240_000;

/** A run of `up`. */
export interface RunningUp {
  readonly pid: number;
  readonly output: () => string;
  /** Stops reading what it prints. */
  readonly stopReading: () => void;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  /** To the whole process group, as Ctrl-C in a terminal does. */
  interrupt(signal: NodeJS.Signals): void;
  /** Waits until it prints what the pattern describes, and returns the first group of it. */
  printed(pattern: RegExp): Promise<string>;
  /** Waits for the line to try, and tries it. */
  curl(): Promise<{ url: string; text: string }>;
}

/** A data folder, which is empty at first, and ports, for one `up` at a time. */
export interface UpSite {
  readonly dataDir: string;
  readonly port: number;
  readonly gatewayPort: number;
  /** Runs a program in the root folder, with the settings of this site. */
  run(program: string, args: readonly string[], env?: Record<string, string>): RunningUp;
  /** The processes of this site that run, with the database server. */
  processes(): number[];
  /** Waits until neither these processes nor any of this site run. */
  expectNothingLeft(before: readonly number[]): Promise<void>;
  /** Kills what still runs, and removes the folder. */
  remove(): Promise<void>;
}

/**
 * A copy of the checkout that is not built, with the same packages: a build in the checkout itself would replace files
 * that other tests are loading.
 */
export async function checkoutCopy(): Promise<TempDir> {
  const copy = await tempDir('checkout');
  const left = new Set([
    '.git',
    'data',
    'dist',
    'node_modules',
    join('rust', 'sdk', 'target'),
    join('rust', 'target'),
  ]);
  await cp(ROOT, copy.path, {
    recursive: true,
    preserveTimestamps: true,
    filter: (source) => !left.has(relative(ROOT, source)),
  });
  await symlink(join(ROOT, 'node_modules'), join(copy.path, 'node_modules'));
  return copy;
}

/** A site that runs what is in `root`, a checkout. */
export async function upSite(root = ROOT): Promise<UpSite> {
  const data = await tempDir('up');
  await makeBuildCache();
  await symlink(BUILD_CACHE, join(data.path, 'build'));
  const [port, gatewayPort] = [await freePort(), await freePort()];
  const children = new Set<ChildProcess>();

  const processes = () => [
    ...processesWith(`DATA_DIR=${data.path}\0`),
    ...processesWith(`PGDATA=${data.path}/`), // the database server
  ];
  return {
    dataDir: data.path,
    port,
    gatewayPort,
    processes,
    run: (program, args, env = {}) => {
      const { DATABASE_URL, REDIS_URL, API_KEY, ...inherited } = process.env;
      const child = spawn(program, args, {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...inherited,
          DATA_DIR: data.path,
          PORT: String(port),
          GATEWAY_PORT: String(gatewayPort),
          ...env,
        },
      });
      children.add(child);
      child.once('close', () => children.delete(child));
      return runningUp(child);
    },
    expectNothingLeft: async (before) => {
      await eventually(() => {
        expect(before.filter(isRunning)).to.deep.equal([]);
        expect(processes()).to.deep.equal([]);
      }, 40_000);
      expect(await readdir(data.path)).not.to.include('up.pid');
    },
    remove: async () => {
      // Only when a test has failed is anything left.
      for (const child of children) {
        child.kill('SIGKILL');
        await new Promise((resolve) => child.once('close', resolve));
      }
      await data.remove();
    },
  };
}

function runningUp(child: ChildProcess): RunningUp {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const { pid = 0 } = child;
  const printed = async (pattern: RegExp) => {
    const match = await eventually(() => {
      const found = pattern.exec(output);
      // What has ended prints no more.
      if (!found && isRunning(pid)) throw new Error(`Not printed: ${pattern}\n${output}`);
      return found;
    }, START_LIMIT_MS);
    if (!match) throw new Error(`It ended before it printed ${pattern}:\n${output}`);
    return match[1] ?? '';
  };
  return {
    pid,
    output: () => output,
    stopReading: () => child.stdout?.destroy(),
    ended: new Promise((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal }));
    }),
    interrupt: (signal) => process.kill(-pid, signal),
    printed,
    curl: async () => {
      const url = await printed(/Try it: +curl (http:\S+)/);
      const answer = await call(url);
      expect(answer.status, answer.text).to.equal(200);
      return { url, text: answer.text };
    },
  };
}
