/** Where the file of a sqlite service is, for its process: that one cannot always follow the links above it. */
import { isAbsolute, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ServiceConfig } from '../../model/service-configs.js';
import { pathOf, sqliteFile, sqliteFolder } from '../../model/sqlite-folders.js';
import { requiringExistingFile, sqliteRefusal } from '../sqlite-refusal.js';
import type { WorkRequest } from './messages.js';
import type { SeenFile, Starter } from './starter.js';

type WorkOnFiles = Pick<WorkRequest, 'service' | 'config' | 'sqliteFolders'>;

export type WithSqliteFolder<T> = T & { readonly sqliteFolder: number | undefined };

/** Why the service is not started. */
export interface StartRefusal {
  readonly refusal: string;
}

/**
 * Looks where the file of a sqlite service is; for other services, there is nothing to look for.
 * @param hadFile whether it was opened before with this path; only asked when it is not there
 * @returns the work with links resolved, and which of the folders has the file; none is made where there was one
 */
export async function place<T extends WorkOnFiles>(
  work: T,
  hadFile: () => Promise<boolean>,
  starter: Pick<Starter, 'look'>,
): Promise<WithSqliteFolder<T> | StartRefusal> {
  const seen = await look(work, starter);
  if (!seen) return { ...work, sqliteFolder: undefined };
  const hasFile = seen.exists || (await hadFile());
  const refusal = sqliteRefusal(work.config as ServiceConfig<'sqlite'>, hasFile, work.sqliteFolders, seen);
  if (refusal !== undefined) return { refusal };
  return atRealPaths(hasFile ? { ...work, config: requiringExistingFile(work.config) } : work, seen);
}

/** What there is of the file of a sqlite service; undefined for another one. */
export async function look(work: WorkOnFiles, starter: Pick<Starter, 'look'>): Promise<SeenFile | undefined> {
  const path = pathOf(work.service.type, work.config);
  if (path === undefined) return undefined;
  return starter.look(folderOf(path, work), sqliteFile(path, work.sqliteFolders));
}

/** Work of a sqlite service with links resolved, and which of the folders has its file. */
export function atRealPaths<T extends WorkOnFiles>(
  work: T,
  { folders }: Pick<SeenFile, 'folders'>,
): WithSqliteFolder<T> {
  const path = pathOf(work.service.type, work.config) ?? '';
  const at = folderOf(path, work);
  const placed = { ...work, sqliteFolder: at };
  if (isDeepStrictEqual(folders, work.sqliteFolders)) return placed;
  const [from = '', to = from] = [work.sqliteFolders[at], folders[at]];
  // Others refer to the first folder, as they are.
  const file = isAbsolute(path) ? join(to, relative(from, path)) : path;
  return { ...placed, sqliteFolders: folders, config: { ...work.config, path: file } };
}

function folderOf(path: string, { sqliteFolders }: WorkOnFiles): number {
  return sqliteFolders.indexOf(sqliteFolder(path, sqliteFolders));
}
