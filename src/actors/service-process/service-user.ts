/** Whom the process of a service runs as where root has started the actor host, and where it finds its files. */
import { realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isBelow, pathOf, type SqliteFolders, sqliteFile } from '../../model/sqlite-folders.js';
import type { Identity } from '../../sandbox/launcher.js';
import { RunUser } from '../../sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS, SERVICE_GROUP, UNTRUSTED_GROUP } from '../../util/untrusted-users.js';
import type { WorkRequest } from './messages.js';

type Work = Pick<WorkRequest, 'service' | 'config' | 'sqliteFolders'>;

export interface ServiceUser {
  readonly identity: Identity;
  /** To be called when the process has ended: kills what it may have left, and frees the user. */
  end(): Promise<void>;
}

/** Work for a process, and whom that runs as. */
export interface PreparedWork<T extends Work> {
  readonly work: T;
  /** Undefined where a process has the user of the actor host. */
  readonly user: ServiceUser | undefined;
}

/**
 * Claims a user, and finds files for it.
 * @param records for `RunUser`
 * @throws Error when there is no user left, or no file descriptor
 */
export async function prepareWork<T extends Work>(work: T, records: string): Promise<PreparedWork<T>> {
  const found = await withRealPaths(work);
  return { work: found, user: await claimUser(found, records) };
}

/** A user that no other program has; for a sqlite service, whoever its folder belongs to. */
async function claimUser(work: Work, records: string): Promise<ServiceUser | undefined> {
  if (!HAS_UNTRUSTED_USERS) return undefined;
  const folder = folderOf(work);
  if (folder !== undefined) return { identity: await ownerOf(folder), end: async () => undefined };
  const user = new RunUser(records);
  user.claim();
  return { identity: identityOf(user.id, UNTRUSTED_GROUP), end: () => user.end() };
}

/** Its work with links resolved, which its user cannot always follow: a folder above may be closed to it. */
async function withRealPaths<T extends Work>(work: T): Promise<T> {
  const folder = folderOf(work);
  const path = pathOf(work.service.type, work.config);
  if (folder === undefined || path === undefined) return work;
  const [first = folder, ...others] = await Promise.all(work.sqliteFolders.map(real));
  const sqliteFolders = [first, ...others] as const;
  if (isDeepStrictEqual(sqliteFolders, work.sqliteFolders)) return work;
  const file = join(await real(folder), relative(folder, sqliteFile(path, work.sqliteFolders)));
  return { ...work, sqliteFolders, config: { ...work.config, path: file } };
}

/** The one of the folders in which the file of a sqlite service is; undefined for other services. */
function folderOf({ service: { type }, config, sqliteFolders }: Work): string | undefined {
  const path = pathOf(type, config);
  if (path === undefined) return undefined;
  const file = sqliteFile(path, sqliteFolders);
  return sqliteFolders.find((folder) => isBelow(file, folder)) ?? sqliteFolders[0];
}

/** Where it belongs to root, that without its rights. */
async function ownerOf(folder: string): Promise<Identity> {
  // One that is not there has no file: the process says so.
  const { uid, gid } = await stat(folder).catch(() => ({ uid: 0, gid: 0 }));
  return identityOf(uid, gid);
}

function identityOf(user: number, group: number): Identity {
  return { user, group, groups: [UNTRUSTED_GROUP, SERVICE_GROUP] };
}

function real(path: SqliteFolders[number]): Promise<string> {
  return realpath(path).catch(() => path);
}
