/** Resolves and checks the file of a sqlite service. */
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { errorCode } from '../../failures.js';
import { ServiceError } from '../../service-error.js';

/**
 * Returns the path of the file with symbolic links resolved.
 * @param folder the folder that it must be in and that relative paths refer to; undefined for no restriction
 * @throws ServiceError `unavailable` with the problem of the path
 */
export async function resolveDatabasePath(
  { path, create_if_missing }: ServiceConfig<'sqlite'>,
  folder: string | undefined,
): Promise<string> {
  if (path.trim() !== path || path === '' || path.startsWith(':') || path.startsWith('file:')) {
    throw refused(`"${path}" is not the path of a file`);
  }
  const given = isAbsolute(path) ? path : resolve(folder ?? '.', path);
  const parent = await existing(dirname(given));
  if (parent === undefined || !(await stat(parent)).isDirectory()) {
    throw refused(
      `the folder ${dirname(given)} does not exist, or is none, or may not be entered: create it, or correct the path`,
    );
  }
  const isThere = (await stateOf(given)) !== undefined;
  const file = isThere ? await existing(given) : join(parent, basename(given));
  if (file === undefined) throw refused(`${given} is a symbolic link to nothing`);
  if (folder !== undefined) await requireWithin(file, folder, given);
  if (isThere && !(await stat(file)).isFile()) throw refused(`${given} is not a file`);
  if (!isThere && !create_if_missing)
    throw refused(`${given} does not exist, and create_if_missing is false`);
  return file;
}

async function requireWithin(file: string, folder: string, given: string): Promise<void> {
  const real = await existing(folder);
  if (real === undefined) throw refused(`the folder for databases, ${folder}, does not exist`);
  const within = relative(real, file);
  if (within === '..' || within.startsWith(`..${sep}`) || isAbsolute(within)) {
    throw refused(`${given} is outside of ${folder}, where databases have to be (SQLITE_DIR)`);
  }
}

/** The path with symbolic links resolved; undefined when it does not exist. */
async function existing(path: string): Promise<string | undefined> {
  return ifThere(realpath(path));
}

async function stateOf(path: string): Promise<unknown> {
  return ifThere(lstat(path));
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (thrown) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(errorCode(thrown) ?? '')) return undefined;
    throw thrown;
  }
}

function refused(message: string): ServiceError {
  return new ServiceError('unavailable', message);
}
