/** Which file a sqlite service may open. */
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { ServiceConfig } from '../../service-configs.js';
import { errorCode } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

/**
 * The file of a config, without symbolic links.
 * @param folder that it must be in, and that relative paths begin at; undefined when it may be anywhere
 * @throws ServiceError `unavailable` saying what is wrong with the path
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

/** The path without symbolic links; undefined when there is nothing. */
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
