/** Where the files of sqlite services may be: whoever writes configs does not choose files of the machine. */
import { isAbsolute, join, normalize, relative, resolve } from 'node:path';
import type { ServiceType } from './service-configs.js';

/** What the operator has set. */
export interface SqliteSettings {
  readonly DATA_DIR: string;
  readonly SQLITE_DIR: string | undefined;
}

/** Absolute; paths of configs refer to the first. */
export type SqliteFolders = readonly [string, ...string[]];

/** Those that SQLITE_DIR names, or one below DATA_DIR. */
export function sqliteFolders({ DATA_DIR, SQLITE_DIR }: SqliteSettings): SqliteFolders {
  const named = (SQLITE_DIR ?? '').split(',').map((folder) => folder.trim());
  const [first = join(DATA_DIR, 'sqlite'), ...others] = named.filter((folder) => folder !== '');
  return [resolve(first), ...others.map((folder) => resolve(folder))];
}

/** The path in the config of a sqlite service. @returns undefined for other types */
export function pathOf(type: ServiceType, config: object): string | undefined {
  return type === 'sqlite' && 'path' in config ? String(config.path) : undefined;
}

/** @returns the paths of the file of a sqlite service before and after a change of its config, if they differ */
export function movedFile(
  type: ServiceType,
  before: object,
  after: object,
): { readonly from: string; readonly to: string } | undefined {
  const [from, to] = [pathOf(type, before), pathOf(type, after)];
  return from === undefined || to === undefined || from === to ? undefined : { from, to };
}

/** The file that a path of a config means. */
export function sqliteFile(path: string, [first]: SqliteFolders): string {
  return normalize(isAbsolute(path) ? path : join(first, path));
}

/** The one of the folders in which the file is that a path of a config means. */
export function sqliteFolder(path: string, folders: SqliteFolders): string {
  const file = sqliteFile(path, folders);
  return folders.find((folder) => isBelow(file, folder)) ?? folders[0];
}

/**
 * Checks a path by its name only: links are followed where the file is opened.
 * @returns what is wrong with a path, to be said after its name; undefined when it may be used
 */
export function sqlitePathProblem(path: string, folders: SqliteFolders): string | undefined {
  const file = sqliteFile(path, folders);
  if (folders.some((folder) => isBelow(file, folder))) return undefined;
  const where = folders.length === 1 ? folders[0] : `one of ${folders.join(', ')}`;
  return `must be a file in ${where}, relative to ${folders[0]} or absolute; the operator can name other folders (SQLITE_DIR)`;
}

function isBelow(file: string, folder: string): boolean {
  const way = relative(folder, file);
  return way !== '' && way !== '..' && !way.startsWith('../');
}
