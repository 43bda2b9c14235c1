/** A copy of the product for a machine without Rust, with what was built on another one of its kind. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { cp, mkdir, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempDir } from './temp.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What git does not know, but for dist/. */
const LEFT_OUT = /^(?:\.git|node_modules|data|rust\/(?:sdk\/)?target)$/;

export interface CopyWithoutCargo {
  /** The folder around the copy. */
  readonly folder: string;
  /** Has Node on its path, and nothing else. */
  readonly environment: Readonly<Record<string, string>>;
  /** The path of a file of the copy. */
  at(path: string): string;
  build(): { readonly status: number | null; readonly output: string };
  /** Starts a process of the copy; resolves when it is ready. */
  start(name: string, env: Readonly<Record<string, string>>): Promise<ChildProcess>;
  remove(): Promise<void>;
}

export async function copyWithoutCargo(): Promise<CopyWithoutCargo> {
  const copy = await tempDir('without-cargo');
  const at = (path: string) => join(copy.path, 'edge-gateway', path);
  const isCopied = (file: string) => !LEFT_OUT.test(relative(ROOT, file));
  await cp(ROOT, at(''), { recursive: true, filter: isCopied });
  await symlink(join(ROOT, 'node_modules'), at('node_modules'));
  const programs = join(copy.path, 'bin');
  await mkdir(programs);
  await symlink(process.execPath, join(programs, 'node'));
  const environment = { PATH: programs, HOME: copy.path, XDG_CACHE_HOME: join(copy.path, 'cache') };
  return {
    folder: copy.path,
    environment,
    at,
    build: () => {
      const { status, stdout, stderr } = spawnSync('node', ['scripts/build.mjs'], {
        cwd: at(''),
        env: environment,
        encoding: 'utf8',
      });
      return { status, output: stdout + stderr };
    },
    start: async (name, env) => {
      const child = fork(at(`dist/src/processes/${name}.js`), {
        env: { ...environment, ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      });
      await ready(child);
      return child;
    },
    remove: () => copy.remove(),
  };
}

async function ready(child: ChildProcess): Promise<void> {
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => {
      printed += data.toString();
    });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', () => reject(new Error(printed)));
  });
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('close', resolve).kill());
}
