/** Where the file of a sqlite service is, for its process: that one cannot always follow the links above it. */
import { isAbsolute, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ServiceConfig } from '../../model/service-configs.js';
import { pathOf, sqliteFile, sqliteFolder } from '../../model/sqlite-folders.js';
import { sqliteRefusal } from '../sqlite-refusal.js';
import type { WorkRequest } from './messages.js';
import type { Starter } from './starter.js';

type Work = Pick<WorkRequest, 'service' | 'config' | 'sqliteFolders'>;

export type Placed<T> = T & { readonly sqliteFolder: number | undefined };

/** Why the service is not started. */
export interface Refused {
  readonly refusal: string;
}

/**
 * Looks where the file of a sqlite service is; for other services, there is nothing to look for.
 * @param hasFile whether it was opened before with this path
 * @returns the work with links resolved, and which of the folders has the file
 */
export async function place<T extends Work>(
  work: T,
  hasFile: boolean,
  starter: Pick<Starter, 'look'>,
): Promise<Placed<T> | Refused> {
  const path = pathOf(work.service.type, work.config);
  if (path === undefined) return { ...work, sqliteFolder: undefined };
  const folder = sqliteFolder(path, work.sqliteFolders);
  const at = work.sqliteFolders.indexOf(folder);
  const seen = await starter.look(at, sqliteFile(path, work.sqliteFolders));
  const refusal = sqliteRefusal(work.config as ServiceConfig<'sqlite'>, hasFile, work.sqliteFolders, seen);
  if (refusal !== undefined) return { refusal };
  const placed = { ...work, sqliteFolder: at };
  if (isDeepStrictEqual(seen.folders, work.sqliteFolders)) return placed;
  // Others refer to the first folder, as they are.
  const file = isAbsolute(path) ? join(seen.folders[at] ?? folder, relative(folder, path)) : path;
  return { ...placed, sqliteFolders: seen.folders, config: { ...work.config, path: file } };
}
