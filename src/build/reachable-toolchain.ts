/**
 * Copies of the toolchain and the SDK for builds that run as other users, which cannot read files that are closed to
 * others, nor, without namespaces, folders that only root may enter, such as `/root/.rustup`.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { chmod, lstat, mkdir, readdir, rename, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isOpenToAll } from '../bootstrap/reachable-folder.js';
import { removeAbandoned } from '../sandbox/abandoned.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Logger } from '../util/log.js';
import { PROCESS_PATTERN, THIS_PROCESS } from '../util/process-liveness.js';
import type { Toolchain } from './toolchain.js';

const run = promisify(execFile);

/** The parts of a Rust toolchain that builds need; the rest is documentation. */
const PARTS_OF_RUST = ['bin', 'lib', 'libexec'];
/** Output of cargo in the folder of the SDK, which builds do not need. */
const OUTPUT_OF_CARGO = 'target';
const COPY_IN_PROGRESS = new RegExp(`^\\.copy-(${PROCESS_PATTERN})-[0-9a-f]{16}$`);
const COPY = /^(rust|sdk)-[0-9a-f]{16}$/;
/** Longer than a worker of this machine is expected to run with an old copy. */
const KEEP_UNUSED_MS = 30 * 24 * 3600 * 1000;

/**
 * The same toolchain at paths that every user can read. Copies it to `folder` where needed, once for each version. The
 * files of Rust are hard links where possible; those of the SDK are not, because they may be edited in place.
 * @param realPaths whether builds use the paths of this machine, so that they must be able to enter the folders above
 */
export async function reachableToolchain(
  toolchain: Toolchain,
  realPaths: boolean,
  folder: string,
  log: Logger,
): Promise<Toolchain> {
  const isReadable = async (source: string, parts: readonly string[]) =>
    (!realPaths || (await isOpenToAll(source))) && (await areReadableByAll(parts));
  await removeAbandoned(folder, COPY_IN_PROGRESS, log);
  const { version, host, sysroot, sdk, fingerprint } = toolchain;
  const reachable = async (
    source: string,
    parts: readonly string[],
    target: string,
    copyParts: CopyParts,
  ) => {
    const sources = parts.map((name) => join(source, name)).filter(existsSync);
    if (await isReadable(source, sources)) return source;
    if (!existsSync(target)) {
      log.info({ source, target }, 'copying for builds, which run as users that cannot read it');
      await copy(sources, target, copyParts);
    }
    const now = new Date();
    await utimes(target, now, now);
    return target;
  };
  const copies = {
    sysroot: await reachable(
      sysroot,
      PARTS_OF_RUST,
      join(folder, `rust-${digest(version, host, sysroot)}`),
      linkInto,
    ),
    sdk: await reachable(sdk, await sdkParts(sdk), join(folder, `sdk-${digest(fingerprint)}`), copyInto),
  };
  await removeOutdated(folder, Object.values(copies));
  const inCopy = (program: string) =>
    program.startsWith(`${sysroot}/`) ? copies.sysroot + program.slice(sysroot.length) : program;
  return { ...toolchain, ...copies, rustc: inCopy(toolchain.rustc), cargo: inCopy(toolchain.cargo) };
}

function digest(...values: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}

async function sdkParts(sdk: string): Promise<string[]> {
  return (await readdir(sdk)).filter((name) => name !== OUTPUT_OF_CARGO);
}

/** Copies files and folders to a new folder, replacing what is there. */
type CopyParts = (folder: string, sources: readonly string[]) => Promise<void>;

/** Copies atomically. */
async function copy(sources: readonly string[], target: string, copyParts: CopyParts): Promise<void> {
  const making = join(target, '..', `.copy-${THIS_PROCESS}-${digest(target)}`);
  try {
    await copyParts(making, sources);
    await rename(making, target);
  } catch (error) {
    // Another worker may have been faster.
    if (!existsSync(target)) throw error;
  } finally {
    await removeTree(making);
  }
}

/**
 * Fills a folder with hard links, which share modes with the sources: only if these are open to all, and on the same
 * file system. Otherwise they are copied.
 */
async function linkInto(folder: string, sources: readonly string[]): Promise<void> {
  if (!(await areReadableByAll(sources))) return copyInto(folder, sources);
  await makeEmpty(folder);
  await run('cp', ['-al', '--', ...sources, folder]).catch(() => copyInto(folder, sources));
}

async function copyInto(folder: string, sources: readonly string[]): Promise<void> {
  await makeEmpty(folder);
  await run('cp', ['-a', '--reflink=auto', '--', ...sources, folder]);
  await run('chmod', ['-R', 'a+rX,u+w', '--', folder]);
}

async function makeEmpty(folder: string): Promise<void> {
  await removeTree(folder);
  await mkdir(folder);
  await chmod(folder, 0o755);
}

/** Whether every user can read all these files and those below, and execute what their owner can. */
async function areReadableByAll(sources: readonly string[]): Promise<boolean> {
  for (const source of sources) {
    const below = (await lstat(source)).isDirectory() ? await readdir(source, { recursive: true }) : [];
    for (const entry of [source, ...below]) {
      const status = await lstat(resolve(source, entry));
      const isExecutable = status.isDirectory() || (status.mode & constants.S_IXUSR) !== 0;
      const needed = isExecutable ? constants.S_IROTH | constants.S_IXOTH : constants.S_IROTH;
      if (!status.isSymbolicLink() && (status.mode & needed) !== needed) return false;
    }
  }
  return true;
}

async function removeOutdated(folder: string, inUse: readonly string[]): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!COPY.test(name) || inUse.includes(path)) continue;
    if (Date.now() - (await stat(path)).mtimeMs > KEEP_UNUSED_MS) await removeTree(path);
  }
}
