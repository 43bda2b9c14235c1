/** Sessions over SFTP. */
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import SftpClient from 'ssh2-sftp-client';
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { type Abortable, stoppedOnAbort } from '../../driver-call.js';
import { errorCode, REASONS, unavailable } from '../../failures.js';
import { ServiceError } from '../../service-error.js';
import { type FileSession, type FolderEntry, FTP_REASONS } from './session.js';

type Config = ServiceConfig<'ftp'>;
type Raw = Awaited<ReturnType<SftpClient['connect']>>;
type Entry = Parameters<Parameters<Raw['readdir']>[1]>[1][number];
type File = Partial<Pick<Entry, 'filename' | 'longname'>> & Pick<Entry, 'attrs'>;

/** The status of SSH_FX_EOF. */
const END_OF_LIST = 1;
/** What an entry takes, besides its name. */
const ENTRY_BYTES = 100;

/** Unanswered keepalives after which the server counts as lost. */
const KEEPALIVES = 3;

/**
 * @param limitBytes of a file, or of a list
 * @throws ServiceError `unavailable`
 */
export async function openSftpSession(
  config: Config,
  opening: Abortable,
  limitBytes: number,
): Promise<FileSession> {
  const where = `${config.host}:${config.port}`;
  // Its own socket, because closing it ends the session at once in any state.
  const socket = connect({ host: config.host, port: config.port ?? 22, keepAlive: true, noDelay: true });
  let offered: string | undefined;
  try {
    return await stoppedOnAbort(
      opening,
      () => socket.destroy(),
      () =>
        openOver(socket, config, where, limitBytes, (key) => {
          offered = key;
        }),
    );
  } catch (thrown) {
    socket.destroy();
    throw unavailable(thrown, where, refusal(toError(thrown), where, offered));
  }
}

/** @param onKey gets the fingerprint of the server's key */
async function openOver(
  socket: Socket,
  config: Config,
  where: string,
  limitBytes: number,
  onKey: (fingerprint: string) => void,
): Promise<FileSession> {
  const ended = endOf(socket, where);
  const unlessEnded = <T>(work: Promise<T>) => Promise.race([work, ended]);
  await unlessEnded(connected(socket));
  const client = new SftpClient('services', { error: ignore, end: ignore, close: ignore });
  let uncheckedKey: string | undefined;
  const options: SftpClient.ConnectOptions = {
    sock: socket,
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password && { password: config.password }),
    ...(config.private_key && { privateKey: config.private_key }),
    readyTimeout: config.timeout_seconds * 1000,
    keepaliveInterval: Math.ceil((config.timeout_seconds * 1000) / KEEPALIVES),
    keepaliveCountMax: KEEPALIVES,
    hostVerifier: (key: Buffer) => {
      const offered = `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
      onKey(offered);
      if (config.host_key === undefined) uncheckedKey = offered;
      return config.host_key === undefined || offered === config.host_key.replace(/=+$/, '');
    },
  };
  const raw = await unlessEnded(client.connect(options));
  const root = await unlessEnded(client.realPath(config.base_path));
  if (root === '' || (await unlessEnded(client.exists(root))) !== 'd') {
    throw new ServiceError('unavailable', FTP_REASONS.folder(where, config.base_path));
  }
  return new SftpSession(
    { client, raw, socket, ended, where, limitBytes },
    root.replace(/\/+$/, ''),
    uncheckedKey,
  );
}

function ignore(): void {
  // The call in progress reports it.
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('connect', () => resolve()));
}

/** Rejects when the socket is closed. */
function endOf(socket: Socket, where: string): Promise<never> {
  const ended = new Promise<never>((_resolve, reject) => {
    socket.once('error', (error) => reject(unavailable(error, where)));
    socket.once('close', () =>
      reject(new ServiceError('unavailable', `the connection to ${where} was closed`)),
    );
  });
  // Prevents an unhandled rejection.
  ended.catch(ignore);
  return ended;
}

/** The reason of a refused connection, in terms of the config. */
function refusal({ message }: Error, where: string, offered: string | undefined): string | undefined {
  if (/authentication methods failed/.test(message)) {
    return `${REASONS.login(where)}, or the private key`;
  }
  if (/parse privateKey|no passphrase given/i.test(message)) {
    return `the private_key cannot be used: it must be a key without a passphrase, in PEM or OpenSSH format`;
  }
  if (/verification failed/i.test(message)) {
    return `the server at ${where} has the key ${offered}, which is not the host_key of the config`;
  }
  if (/Timed out/i.test(message)) return REASONS.silent(where);
  return undefined;
}

interface SftpConnection {
  readonly client: SftpClient;
  /** The library below `client`, which holds lists of any length. */
  readonly raw: Raw;
  readonly socket: Socket;
  /** Rejects when the socket is closed. */
  readonly ended: Promise<never>;
  readonly where: string;
  readonly limitBytes: number;
}

class SftpSession implements FileSession {
  readonly #client: SftpClient;
  readonly #connection: SftpConnection;

  constructor(
    connection: SftpConnection,
    readonly root: string,
    readonly uncheckedKey: string | undefined,
  ) {
    this.#client = connection.client;
    this.#connection = connection;
  }

  get isOpen(): boolean {
    const { socket } = this.#connection;
    return !socket.destroyed && socket.readable;
  }

  async check(): Promise<void> {
    await this.#run(this.#client.realPath('.'));
  }

  async download(path: string): Promise<Buffer | undefined> {
    const { limitBytes } = this.#connection;
    const tooLarge = () => new ServiceError('invalid', FTP_REASONS.tooLarge('file', limitBytes));
    try {
      const { size, isFile } = await this.#run(this.#client.stat(path));
      if (!isFile) throw new ServiceError('backend', 'it is not a file');
      if (size > limitBytes) throw tooLarge();
      // Without a destination, `get` returns a buffer. The file may have more than the server has said.
      const readStreamOptions: object = { end: limitBytes };
      const content = (await this.#run(this.#client.get(path, undefined, { readStreamOptions }))) as Buffer;
      if (content.length > limitBytes) throw tooLarge();
      return content;
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  async upload(path: string, content: Buffer): Promise<void> {
    await this.#run(this.#client.put(content, path));
  }

  async makeFolder(path: string): Promise<void> {
    await this.#run(this.#client.mkdir(path)).catch((thrown: unknown) => {
      if (!isRefusal(thrown)) throw thrown;
    });
  }

  async rename(from: string, to: string): Promise<void> {
    try {
      await this.#run(this.#client.posixRename(from, to));
      return;
    } catch (thrown) {
      // An extension of OpenSSH.
      if (!isRefusal(thrown) || !/does not support/.test(thrown.message)) throw thrown;
    }
    try {
      await this.#run(this.#client.rename(from, to));
    } catch (thrown) {
      // Without the extension, rename may refuse to replace an existing file.
      if (!isRefusal(thrown) || !(await this.remove(to))) throw thrown;
      await this.#run(this.#client.rename(from, to));
    }
  }

  async remove(path: string): Promise<boolean> {
    try {
      await this.#run(this.#client.delete(path));
      return true;
    } catch (thrown) {
      if (isMissing(thrown)) return false;
      throw thrown;
    }
  }

  async list(path: string): Promise<FolderEntry[] | undefined> {
    try {
      return await this.#run(readFolder(this.#connection, path === '' ? '/' : path));
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  close(): void {
    this.#connection.socket.destroy();
  }

  async #run<T>(work: Promise<T>): Promise<T> {
    // It may reject after the connection has ended.
    work.catch(ignore);
    try {
      return await Promise.race([work, this.#connection.ended]);
    } catch (thrown) {
      if (thrown instanceof ServiceError) throw thrown;
      const error = toError(thrown);
      if (!this.isOpen) throw unavailable(error, this.#connection.where);
      // The library prefixes the message of the server with names of its functions.
      throw new ServiceError('backend', error.message.replace(/^(?:[\w-]+(?:->|: ))+/, ''), { cause: error });
    }
  }
}

/** Reads a folder piece by piece, of which a server may send any number. */
async function readFolder({ raw, where, limitBytes }: SftpConnection, path: string): Promise<FolderEntry[]> {
  const handle = await answered<Buffer>((done) => raw.opendir(path, done));
  const entries: FolderEntry[] = [];
  try {
    for (let bytes = 0; ; ) {
      const files = await answered<readonly File[]>((done) => raw.readdir(handle, done));
      for (const { filename, longname, attrs } of files) {
        // Missing where the server has cut it.
        if (filename === undefined || longname === undefined)
          throw new ServiceError('unavailable', REASONS.garbled(where));
        bytes += ENTRY_BYTES + filename.length;
        if (bytes > limitBytes) throw new ServiceError('invalid', FTP_REASONS.tooLarge('list', limitBytes));
        // The type is read as from a long list: the mode may be unknown.
        const type = longname.slice(0, 1);
        entries.push({
          name: filename,
          kind: type === '-' ? 'file' : type === 'd' ? 'folder' : 'other',
          size: attrs.size,
          modified: new Date(attrs.mtime * 1000),
        });
      }
    }
  } catch (thrown) {
    if (!(thrown instanceof Error) || !('code' in thrown) || thrown.code !== END_OF_LIST) throw thrown;
  } finally {
    raw.close(handle, ignore);
  }
  return entries;
}

function answered<T>(ask: (done: (error: Error | undefined, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    ask((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Whether the server refused, and the connection still works. */
function isRefusal(thrown: unknown): thrown is ServiceError {
  return thrown instanceof ServiceError && thrown.kind === 'backend';
}

function isMissing(thrown: unknown): boolean {
  if (!isRefusal(thrown)) return false;
  const { cause } = thrown;
  const numeric = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return numeric === 2 || errorCode(cause) === 'ENOENT' || /no such file/i.test(thrown.message);
}
