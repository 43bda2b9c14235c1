/** DATA_DIR: the folder with all data of the product on this machine, most of which only its user may access. */
import { constants, existsSync } from 'node:fs';
import { access, mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, ConfigError } from '../config.js';
import { toError } from '../errors.js';
import { sqliteFolders } from '../model/sqlite-folders.js';

/** The folder with the code of the product. */
export const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** Mode for root: other users, like that of the embedded PostgreSQL, may traverse the folder but not list it. */
const PASSABLE = 0o711;
const PRIVATE = 0o700;
/** Folders that no other user needs to access. */
const PRIVATE_FOLDERS = ['artifacts', 'handlers', 'uploads'];

/** PostgreSQL limits the length of paths, and there are long ones below. */
const MAX_PATH_BYTES = 512;

/**
 * Creates the folder if it does not exist. The modes of an existing one are left to the operator.
 * @throws ConfigError with the reason why it cannot be used
 */
export async function makeDataDirectory(path: string): Promise<void> {
  try {
    if (Buffer.byteLength(path) > MAX_PATH_BYTES)
      throw new Error(`the path is longer than ${MAX_PATH_BYTES} bytes`);
    await makeFolder(path, process.getuid?.() === 0 ? PASSABLE : PRIVATE);
    for (const name of PRIVATE_FOLDERS) await makeFolder(join(path, name), PRIVATE);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    const advice = 'Set DATA_DIR to a folder that this user can write to.';
    throw new ConfigError(`DATA_DIR: ${path} cannot be used: ${reasonOf(thrown)}. ${advice}`, {
      cause: thrown,
    });
  }
}

/** Not `mkdir` with `recursive`, which never returns below `/proc` and other file systems without `mkdir`. */
async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') {
      if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`, { cause: error });
      return;
    }
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error;
    await makeFolder(dirname(path), mode);
    await mkdir(path, { mode });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOENT: 'no folder can be made there',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'the disk is full',
  ENAMETOOLONG: 'a name in it is too long',
};

function reasonOf(error: unknown): string {
  return REASONS[codeOf(error) ?? ''] ?? toError(error).message;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/** Files in the folder of cargo that may contain passwords. */
const CARGO_SECRETS = ['credentials.toml', 'credentials', 'config.toml', 'config'];

/**
 * Files and folders that untrusted programs must not see.
 * @param tools the environment of cargo
 */
export function secretPaths(
  { DATA_DIR, SQLITE_DIR }: Pick<Config, 'DATA_DIR' | 'SQLITE_DIR'>,
  tools: Readonly<Record<string, string>>,
): string[] {
  const cargo = tools['CARGO_HOME'] ?? join(tools['HOME'] ?? '/', '.cargo');
  return [
    DATA_DIR,
    CHECKOUT,
    ...sqliteFolders({ DATA_DIR, SQLITE_DIR }),
    ...CARGO_SECRETS.map((name) => join(cargo, name)),
  ];
}
