/** How the process of a service is started: whom it runs as where root has started the actor host, and its files. */
import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { NodeProgram } from '../../bootstrap/service-program.js';
import { pathOf, type SqliteFolders, sqliteFolder } from '../../model/sqlite-folders.js';
import type { Identity } from '../../sandbox/launcher.js';
import { RunUser } from '../../sandbox/run-user.js';
import {
  HAS_UNTRUSTED_USERS,
  SERVICE_GROUP,
  SERVICE_USERS,
  SQLITE_USER,
  UNTRUSTED_GROUP,
} from '../../util/untrusted-users.js';
import type { WorkRequest } from './messages.js';

type Work = Pick<WorkRequest, 'service' | 'config' | 'sqliteFolders'>;

/** The same for all services of an actor host. */
export interface ServicePrograms {
  /** That of the services in Node, where their users can read it. */
  readonly node: NodeProgram;
  /** The folder in which users in use are recorded. */
  readonly runDir: string;
}

export interface ServiceUser {
  readonly identity: Identity;
  /** To be called when the process has ended, which has started no other. */
  free(): void;
}

/** Work for a process, and whom that runs as. */
export interface PreparedWork<T extends Work> {
  readonly work: T;
  /** Undefined where a process has the user of the actor host. */
  readonly user: ServiceUser | undefined;
}

/**
 * Claims a user, and finds files for it.
 * @throws Error when there is no user left, or no file descriptor
 */
export async function prepareWork<T extends Work>(
  work: T,
  { runDir }: ServicePrograms,
): Promise<PreparedWork<T>> {
  const found = await withRealPaths(work);
  return { work: found, user: await claimUser(found, runDir) };
}

/** A user that no other program has; for a sqlite service, whoever its folder belongs to. */
async function claimUser(work: Work, records: string): Promise<ServiceUser | undefined> {
  if (!HAS_UNTRUSTED_USERS) return undefined;
  const folder = folderOf(work);
  if (folder !== undefined) return { identity: await ownerOf(folder), free: () => undefined };
  const user = new RunUser(records, undefined, SERVICE_USERS);
  user.claim();
  return { identity: identityOf(user.id, UNTRUSTED_GROUP), free: () => user.release() };
}

/** Its work with links resolved, which its user cannot always follow: a folder above may be closed to it. */
async function withRealPaths<T extends Work>(work: T): Promise<T> {
  const folder = folderOf(work);
  const path = pathOf(work.service.type, work.config);
  if (folder === undefined || path === undefined) return work;
  const [first = folder, ...others] = await Promise.all(work.sqliteFolders.map(real));
  const sqliteFolders = [first, ...others] as const;
  if (isDeepStrictEqual(sqliteFolders, work.sqliteFolders)) return work;
  // Others refer to the first folder, as they are.
  const file = isAbsolute(path) ? join(await real(folder), relative(folder, path)) : path;
  return { ...work, sqliteFolders, config: { ...work.config, path: file } };
}

/** The one of the folders in which the file of a sqlite service is; undefined for other services. */
function folderOf({ service: { type }, config, sqliteFolders }: Work): string | undefined {
  const path = pathOf(type, config);
  return path === undefined ? undefined : sqliteFolder(path, sqliteFolders);
}

/** Never root: a service whose folder belongs to it is refused. The process says what is wrong with another one. */
async function ownerOf(folder: string): Promise<Identity> {
  const found = await stat(folder).catch(() => undefined);
  return found && found.uid !== 0 ? identityOf(found.uid, found.gid) : identityOf(SQLITE_USER, SQLITE_USER);
}

function identityOf(user: number, group: number): Identity {
  return { user, group, groups: [UNTRUSTED_GROUP, SERVICE_GROUP] };
}

function real(path: SqliteFolders[number]): Promise<string> {
  return realpath(path).catch(() => path);
}
