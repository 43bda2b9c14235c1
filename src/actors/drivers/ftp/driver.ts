/** The driver for file servers: FTP, FTP with TLS, and SFTP. */
import { randomBytes } from 'node:crypto';
import { MAX_BODY_BYTES } from '../../../wire/codec.js';
import { type Connection, defineDriver, openOrClose } from '../../driver.js';
import { type Abortable, AbortSource } from '../../driver-call.js';
import { requireSendable } from '../../operations.js';
import { Type } from '../../schema.js';
import { ServiceError } from '../../service-error.js';
import { openFtpSession } from './ftp.js';
import { type FileSession, type FolderEntry, SessionPool } from './session.js';
import { openSftpSession } from './sftp.js';

/** Sessions, and so concurrent calls: servers allow few connections per user. */
const SESSIONS = 4;
/** Timeout for removing the partial file of a failed upload. */
const CLEANUP_TIMEOUT_MS = 3_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches control characters
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

const PathArgs = Type.Object({ path: Type.String({ maxLength: 4096, refine: pathProblem }) });
const FileArgs = Type.Object({
  path: Type.String({
    maxLength: 4096,
    refine: (path: string) =>
      pathProblem(path) ?? (completePath(path) === '' ? 'must name a file' : undefined),
  }),
});

export const ftpDriver = defineDriver({
  type: 'ftp',
  concurrency: () => SESSIONS,
  connect: async (config, context) => {
    const open = config.protocol === 'sftp' ? openSftpSession : openFtpSession;
    const limitBytes = Math.min(context.answerBytes, MAX_BODY_BYTES);
    const pool = new SessionPool((opening) => open(config, opening, limitBytes));
    // Opening a session logs in and checks the folder.
    await openOrClose(context, pool, () => pool.use(async () => undefined, context));
    return new FtpConnection(
      pool,
      `${config.protocol.toUpperCase()} server at ${config.host}:${config.port}`,
    );
  },
  operations: {
    get: {
      args: FileArgs,
      run: async (ftp, { path }, call) => {
        const content = await ftp.download(completePath(path), call);
        return content ? { result: { found: true }, payload: content } : { result: { found: false } };
      },
    },
    put: {
      args: FileArgs,
      run: async (ftp, { path }, call) => {
        await ftp.upload(completePath(path), call.payload, call);
        return { result: { size: call.payload.length } };
      },
    },
    list: {
      args: PathArgs,
      run: async (ftp, { path }, call) => {
        const payload = JSON.stringify(await ftp.list(completePath(path), call));
        requireSendable(Buffer.byteLength(payload));
        return { payload };
      },
    },
    delete: {
      args: FileArgs,
      run: async (ftp, { path }, call) => ({
        result: { deleted: await ftp.remove(completePath(path), call) },
      }),
    },
  },
});

/** Describes the problem of a path that could escape from the folder of the config or be ambiguous. */
function pathProblem(path: string): string | undefined {
  if (CONTROL_CHARACTER.test(path)) return 'must not have control characters';
  if (/\p{Surrogate}/u.test(path)) return 'must be Unicode text without lone surrogates';
  if (path.startsWith('/')) return 'must not begin with a slash: it is below base_path';
  // Some servers treat a backslash as a slash.
  return path.split(/[/\\]/).includes('..') ? 'must not have ".." in it' : undefined;
}

/** Relative to the folder of the config: begins with a slash, or is empty for the folder itself. */
function completePath(path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  return segments.map((segment) => `/${segment}`).join('');
}

/** Paths begin with a slash and are relative to the folder of the config. */
class FtpConnection implements Connection {
  readonly #pool: SessionPool;
  readonly #name: string;

  constructor(pool: SessionPool, name: string) {
    this.#pool = pool;
    this.#name = name;
  }

  async test(): Promise<string> {
    const uncheckedKey = await this.#pool.use(async (session) => {
      await session.check();
      return session.uncheckedKey;
    }, new AbortSource());
    return uncheckedKey === undefined
      ? this.#name
      : `${this.#name}; host key ${uncheckedKey}, not checked: the config has no host_key`;
  }

  download(path: string, call: Abortable): Promise<Buffer | undefined> {
    return this.#pool.use((session) => session.download(session.root + path), call);
  }

  /** Uploads to a temporary name in the same folder, and renames the file when it is complete. */
  async upload(path: string, content: Buffer, call: Abortable): Promise<void> {
    const folder = path.slice(0, path.lastIndexOf('/'));
    const temporary = `${folder}/.upload-${randomBytes(12).toString('hex')}`;
    try {
      await this.#pool.use(async (session) => {
        await uploadInto(session, folder, session.root + temporary, content);
        await session.rename(session.root + temporary, session.root + path);
      }, call);
    } catch (thrown) {
      const limit = new AbortSource();
      const timeout = setTimeout(() => limit.abort(), CLEANUP_TIMEOUT_MS);
      // If the server is unreachable, the file remains. The error of the upload is reported.
      await this.remove(temporary, limit).catch(() => undefined);
      clearTimeout(timeout);
      throw thrown;
    }
  }

  async list(path: string, call: Abortable): Promise<FolderEntry[]> {
    const entries = await this.#pool.use((session) => session.list(session.root + path), call);
    if (!entries) throw new ServiceError('backend', `there is no folder "${path.slice(1)}"`);
    return entries;
  }

  remove(path: string, call: Abortable): Promise<boolean> {
    return this.#pool.use((session) => session.remove(session.root + path), call);
  }

  async close(): Promise<void> {
    this.#pool.close();
  }
}

/** Creates the folder only if the upload is refused, because mostly it exists. */
async function uploadInto(
  session: FileSession,
  folder: string,
  path: string,
  content: Buffer,
): Promise<void> {
  try {
    await session.upload(path, content);
  } catch (thrown) {
    if (!(thrown instanceof ServiceError) || thrown.kind !== 'backend' || folder === '') throw thrown;
    for (let slash = folder.indexOf('/', 1); slash !== -1; slash = folder.indexOf('/', slash + 1)) {
      await session.makeFolder(session.root + folder.slice(0, slash));
    }
    await session.makeFolder(session.root + folder);
    await session.upload(path, content);
  }
}
