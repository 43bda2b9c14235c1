/**
 * The location of the data of an embedded PostgreSQL server, and the user that runs it. PostgreSQL refuses to run as
 * root; then the server runs as another user, who may be unable to enter the folder of the data.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, mkdtemp, readFile, readlink, realpath, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isOpenToAll, makeFolderOfRoot, REACHABLE_BASE } from '../bootstrap/reachable-folder.js';
import { isErrno } from '../util/errno.js';

/** A user other than the one that runs this process. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface ServerPlace {
  /** The data folder with symbolic links resolved. It may not exist yet; its parent does. */
  readonly data: string;
  /** Undefined when the server runs as the user of this process. */
  readonly user: ServerUser | undefined;
}

const USER_NAME = 'postgres';
const execute = promisify(execFile);

/** Prefix of the folders that data is moved to. */
const NEW_PLACE = join(REACHABLE_BASE, 'database-');
/** Where an earlier version put data that the user of the server could not reach. */
const EARLIER_BASE = '/var/lib/edge-gateway';

/**
 * The location of the data of `folder/postgres`, existing or new. If the server of root cannot enter `folder`, the data
 * is moved to `REACHABLE_BASE`, and `folder/postgres` becomes a symbolic link. The server must not be running.
 * @throws Error saying what to do when there is no such location, or no user to run as, or the data is another's
 */
export async function findPlace(folder: string): Promise<ServerPlace> {
  const own = join(await realpath(folder), 'postgres');
  const data = await existingData(folder);
  if (process.getuid?.() !== 0) return { data: data ?? own, user: undefined };
  const user = await databaseUser();
  if (data !== undefined) await requireOwn(data, own, user);
  if (await isOpenToAll(dirname(data ?? own))) return { data: data ?? own, user };
  return { data: await move(data, own), user };
}

/**
 * The data folder of `folder`, symbolic links resolved; undefined when there is none yet. Completes a move that was
 * interrupted.
 * @throws Error when `folder/postgres` is a link to a place that is not there
 */
export async function existingData(folder: string): Promise<string | undefined> {
  const own = join(await realpath(folder), 'postgres');
  await completeMove(own);
  return (await resolved(own)) ?? (await movedByEarlierVersion(folder));
}

async function resolved(path: string): Promise<string | undefined> {
  if (!(await exists(path))) return undefined;
  try {
    return await realpath(path);
  } catch (cause) {
    const target = resolve(dirname(path), await readlink(path));
    // The first start was interrupted before it had made the data.
    const place = await realpath(dirname(target)).catch(() => undefined);
    if (place !== undefined) return join(place, basename(target));
    const advice = 'Put the data back there, or remove the link to begin with an empty database.';
    throw new Error(`The database is not there: ${path} is a link to ${target}. ${advice}`, { cause });
  }
}

/** An earlier version wrote the location to a file instead of creating a link. */
async function movedByEarlierVersion(folder: string): Promise<string | undefined> {
  const note = join(folder, 'postgres.moved');
  if ((await readFile(note).catch(() => undefined)) === undefined) return undefined;
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 12);
  const data = await resolved(join(EARLIER_BASE, digest, 'postgres'));
  if (data !== undefined) await symlink(data, join(folder, 'postgres'));
  await rm(note);
  return data;
}

/**
 * Refuses data of another user, except where only this product has data: there a backup was restored, by root or with
 * the ids of another machine. The server makes its user the owner.
 */
async function requireOwn(data: string, own: string, { uid }: ServerUser): Promise<void> {
  if (data === own || data.startsWith(NEW_PLACE)) return;
  if (!(await exists(data)) || (await lstat(data)).uid === uid) return;
  throw new Error(
    `The database in ${data}, to which ${own} is a link, does not belong to the user \`${USER_NAME}\` that it is to ` +
      `run as. If it is the database of Edge Gateway: \`chown -hR ${USER_NAME}: ${data}\`.`,
  );
}

async function databaseUser(): Promise<ServerUser> {
  const known = await lookUp(USER_NAME);
  if (known) return known;
  const home = ['--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin'];
  const failure = await execute('useradd', ['--system', '--user-group', ...home, USER_NAME]).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  // Another process may have created it concurrently.
  const made = await lookUp(USER_NAME);
  if (made) return made;
  throw new Error(
    `PostgreSQL does not run as root, and there is no user \`${USER_NAME}\` to run it as: make one ` +
      `(\`useradd --system ${USER_NAME}\`), start Edge Gateway as another user, or set DATABASE_URL.`,
    { cause: failure },
  );
}

async function lookUp(name: string): Promise<ServerUser | undefined> {
  try {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (option) => Number((await execute('id', [option, name])).stdout)),
    );
    return { uid: uid ?? Number.NaN, gid: gid ?? Number.NaN };
  } catch {
    return undefined; // `id` fails when there is no such user
  }
}

/** During a move: the data that was at `own`, and the link that is to be there. */
const namesDuringMove = (own: string) => ({ old: `${own}.before-move`, link: `${own}.link` });

/**
 * Moves existing data to a folder that all users can enter. At each moment `own`, or else `old`, leads to all the data;
 * `completeMove` continues after an interruption.
 */
async function move(data: string | undefined, own: string): Promise<string> {
  const { old, link } = namesDuringMove(own);
  try {
    await makeFolderOfRoot(REACHABLE_BASE);
    const place = await mkdtemp(NEW_PLACE);
    const moved = join(place, 'postgres');
    await symlink(moved, link);
    await makeFolderOfRoot(place);
    if (data !== undefined && (await exists(data))) {
      await execute('cp', ['-a', '--reflink=auto', '--', data, `${moved}.new`]);
      await execute('sync', ['-f', `${moved}.new`]);
      await rename(`${moved}.new`, moved);
    }
    if (data === own) await rename(own, old);
    await rename(link, own);
    // It was elsewhere when `own` was a link.
    const source = data === own ? old : data;
    if (source !== undefined) await rm(source, { recursive: true, force: true });
    return moved;
  } catch (cause) {
    throw new Error(
      `The user that PostgreSQL runs as cannot enter ${dirname(own)}, and the database could not be put into ` +
        `${REACHABLE_BASE} instead (${String(cause)}): set DATA_DIR to a folder that every user can enter.`,
      { cause },
    );
  }
}

/** Continues an interrupted move if the copy is complete, which it is when `own` was renamed; else removes the copy. */
async function completeMove(own: string): Promise<void> {
  const { old, link } = namesDuringMove(own);
  const isComplete = (await exists(old)) && !(await exists(own));
  if (isComplete) await rename((await exists(link)) ? link : old, own);
  if (await exists(link)) {
    const place = dirname(await readlink(link));
    if (place.startsWith(NEW_PLACE)) await rm(place, { recursive: true, force: true });
    await rm(link);
  }
  if ((await exists(own)) && (await lstat(own)).isSymbolicLink())
    await rm(old, { recursive: true, force: true });
}

/** Whether there is a file, folder or link with this name. */
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
