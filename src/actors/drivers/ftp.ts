/** The driver for file servers: FTP, FTP with TLS, and SFTP. */
import { randomBytes } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { checkOf, describeProblem } from '../../validation/check.js';
import { MAX_BODY_BYTES } from '../../wire/codec.js';
import { requireSendable } from '../answer-size.js';
import type { Connection, Driver, DriverAnswer, DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { openFtpSession } from './ftp-plain.js';
import { SessionPool } from './ftp-pool.js';
import { type FileSession, pathSegments } from './ftp-session.js';
import { openSftpSession } from './ftp-sftp.js';

/** Sessions, and so calls at once: servers allow few connections of one user. */
const SESSIONS = 4;
/** For taking away what a broken upload has left. */
const CLEANUP_MS = 3_000;

const PathArgs = Type.Object({ path: Type.String() });
const checkPathArgs = checkOf(PathArgs);

type Operation = (pool: SessionPool, call: DriverCall) => Promise<DriverAnswer>;

const OPERATIONS: Readonly<Record<string, Operation>> = { get, put, list, delete: remove };

export const ftpDriver: Driver<'ftp'> = {
  type: 'ftp',
  operations: Object.keys(OPERATIONS),
  concurrency: () => SESSIONS,
  async connect(config, { signal }) {
    const open = config.protocol === 'sftp' ? openSftpSession : openFtpSession;
    const pool = new SessionPool((opening) => open(config, opening));
    try {
      // Opening logs in and looks for the folder.
      await pool.use(async () => undefined, signal);
      return new FtpConnection(
        pool,
        `${config.protocol.toUpperCase()} server at ${config.host}:${config.port}`,
      );
    } catch (thrown) {
      pool.close();
      throw thrown;
    }
  },
};

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
    }, new AbortController().signal);
    return uncheckedKey === undefined
      ? this.#name
      : `${this.#name}; host key ${uncheckedKey}, not checked: the config has no host_key`;
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    const operation = OPERATIONS[call.operation];
    if (!operation) throw new ServiceError('invalid', `there is no operation "${call.operation}"`);
    return operation(this.#pool, call);
  }

  async close(): Promise<void> {
    this.#pool.close();
  }
}

async function get(pool: SessionPool, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const path = filePath(args);
  const content = await pool.use((session) => session.download(session.root + path, MAX_BODY_BYTES), signal);
  return content ? { result: { found: true }, payload: content } : { result: { found: false } };
}

/** Uploads beside the file, under a name nobody uses, and moves it there when all of it has arrived. */
async function put(pool: SessionPool, { args, payload, signal }: DriverCall): Promise<DriverAnswer> {
  const path = filePath(args);
  const folder = path.slice(0, path.lastIndexOf('/'));
  const aside = `${folder}/.upload-${randomBytes(12).toString('hex')}`;
  try {
    await pool.use(async (session) => {
      await uploadInto(session, folder, session.root + aside, payload);
      await session.rename(session.root + aside, session.root + path);
    }, signal);
  } catch (thrown) {
    await removeQuietly(pool, aside);
    throw thrown;
  }
  return { result: { size: payload.length } };
}

/** Makes the folder when the server does not take the file: it is there nearly always. */
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

/** On another session if need be; when the server is away, the file stays. */
async function removeQuietly(pool: SessionPool, path: string): Promise<void> {
  await pool
    .use((session) => session.remove(session.root + path), AbortSignal.timeout(CLEANUP_MS))
    // Why the upload failed is what matters.
    .catch(() => undefined);
}

async function list(pool: SessionPool, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const path = completePath(args);
  const entries = await pool.use((session) => session.list(session.root + path), signal);
  if (!entries) throw new ServiceError('backend', `there is no folder "${path.slice(1)}"`);
  const payload = JSON.stringify(entries);
  requireSendable(Buffer.byteLength(payload));
  return { payload };
}

async function remove(pool: SessionPool, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const path = filePath(args);
  const deleted = await pool.use((session) => session.remove(session.root + path), signal);
  return { result: { deleted } };
}

/** Below the folder of the config: with a slash at its beginning, or empty for the folder itself. */
function completePath(args: unknown): string {
  const value = args ?? {};
  const problem = checkPathArgs(value);
  if (problem) throw new ServiceError('invalid', describeProblem('args', problem));
  return pathSegments((value as { path: string }).path)
    .map((segment) => `/${segment}`)
    .join('');
}

function filePath(args: unknown): string {
  const path = completePath(args);
  if (path === '') throw new ServiceError('invalid', 'args.path: must name a file');
  return path;
}
