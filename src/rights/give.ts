/** What root gives the users of `web` and `actor-host`, each time before these start: what they read, and write. */
import { execFile } from 'node:child_process';
import { constants, existsSync } from 'node:fs';
import { chmod, chown, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { artifactFolder } from '../artifacts/open.js';
import { CHECKOUT } from '../bootstrap/data-directory.js';
import type { Config } from '../config.js';
import { toError } from '../errors.js';
import { makeKeyFile } from '../secrets/secret-box.js';
import type { Log } from '../util/log.js';
import { PRODUCT_GROUP, WEB_USER } from '../util/untrusted-users.js';
import { removeStaleUploads } from '../util/uploads.js';

const run = promisify(execFile);

/** What it runs. */
const CODE = ['package.json', 'dist', 'node_modules', 'ui'].map((name) => join(CHECKOUT, name));
/** Files that are written whenever one of these is made: by their modes, others can read all or nothing. */
const MADE = [
  'package.json',
  'dist/processes/files.json',
  'node_modules/.package-lock.json',
  'ui/dist/index.html',
];

/**
 * @returns all files and folders that `web` needs, but for sockets
 * @throws Error when something cannot be given
 */
export async function giveToWeb(config: Config, log: Log): Promise<string[]> {
  const common = await giveToAll(config, log);
  const uploads = join(config.DATA_DIR, 'uploads');
  if ((await stat(uploads)).uid !== WEB_USER) {
    // What root has left there; later, root touches nothing in a folder that another user can change.
    await removeStaleUploads(config.DATA_DIR);
    await chown(uploads, WEB_USER, WEB_USER);
    log.info({ folder: uploads, user: WEB_USER }, 'a folder belongs to the user of web now');
  }
  const artifacts = artifactFolder(config);
  if (artifacts === undefined || !existsSync(artifacts)) return [...common, uploads];
  await letRead(artifacts, 0o710, log);
  return [...common, uploads, artifacts];
}

/**
 * @returns the code of the product, and the file with its key
 * @throws Error when something cannot be given
 */
export async function giveToAll(config: Config, log: Log): Promise<string[]> {
  if (await makeReadable()) log.info({ folder: CHECKOUT }, 'all users may read the code of the product now');
  const key = await makeKeyFile(config);
  if (key === undefined) return CODE;
  await letRead(key, 0o640, log);
  return [...CODE, key];
}

/** @returns whether it was not, as after an installation with a umask of 077 */
async function makeReadable(): Promise<boolean> {
  const modes = await Promise.all(
    MADE.map((name) =>
      stat(join(CHECKOUT, name)).then(
        ({ mode }) => mode,
        () => constants.S_IROTH,
      ),
    ),
  );
  if (modes.every((mode) => (mode & constants.S_IROTH) !== 0)) return false;
  await run('chmod', ['-R', 'go+rX', '--', ...CODE.filter((path) => existsSync(path))]);
  return true;
}

/** Lets the group of the product read what is root's. What belongs to somebody else is left as it is. */
async function letRead(path: string, mode: number, log: Log): Promise<void> {
  const stats = await stat(path);
  const isReadable = stats.gid === PRODUCT_GROUP && (stats.mode & mode) === mode;
  // The same rights for all other users: who has them needs nothing from the group.
  const bits = (mode >> 3) & 0o7;
  if (isReadable || stats.uid !== 0 || (stats.mode & bits) === bits) return;
  try {
    await chown(path, 0, PRODUCT_GROUP);
    await chmod(path, (stats.mode & 0o777) | mode);
    log.info({ path, group: PRODUCT_GROUP }, 'web and actor-host may read this now');
  } catch (error) {
    // A file may be mounted read-only, for example: the process gets a copy of it.
    log.warn({ err: toError(error), path }, 'web and actor-host cannot be given this');
  }
}
