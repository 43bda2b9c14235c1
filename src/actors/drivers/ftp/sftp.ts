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

/** Unanswered keepalives after which the server counts as lost. */
const KEEPALIVES = 3;

/** @throws ServiceError `unavailable` */
export async function openSftpSession(config: Config, opening: Abortable): Promise<FileSession> {
  const where = `${config.host}:${config.port}`;
  // Its own socket, because closing it ends the session at once in any state.
  const socket = connect({ host: config.host, port: config.port ?? 22, keepAlive: true, noDelay: true });
  let offered: string | undefined;
  try {
    return await stoppedOnAbort(
      opening,
      () => socket.destroy(),
      () =>
        openOver(socket, config, where, (key) => {
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
  await unlessEnded(client.connect(options));
  const root = await unlessEnded(client.realPath(config.base_path));
  if (root === '' || (await unlessEnded(client.exists(root))) !== 'd') {
    throw new ServiceError('unavailable', FTP_REASONS.folder(where, config.base_path));
  }
  return new SftpSession(client, socket, ended, root.replace(/\/+$/, ''), where, uncheckedKey);
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

class SftpSession implements FileSession {
  readonly root: string;
  readonly #client: SftpClient;
  readonly #socket: Socket;
  readonly #ended: Promise<never>;
  readonly #where: string;

  constructor(
    client: SftpClient,
    socket: Socket,
    ended: Promise<never>,
    root: string,
    where: string,
    readonly uncheckedKey: string | undefined,
  ) {
    this.#client = client;
    this.#socket = socket;
    this.#ended = ended;
    this.root = root;
    this.#where = where;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && this.#socket.readable;
  }

  async check(): Promise<void> {
    await this.#run(this.#client.realPath('.'));
  }

  async download(path: string, limitBytes: number): Promise<Buffer | undefined> {
    try {
      const { size, isFile } = await this.#run(this.#client.stat(path));
      if (!isFile) throw new ServiceError('backend', 'it is not a file');
      if (size > limitBytes) throw new ServiceError('invalid', FTP_REASONS.tooLarge(limitBytes));
      // Without a destination, `get` returns a buffer.
      return (await this.#run(this.#client.get(path))) as Buffer;
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
      const files = await this.#run(this.#client.list(path === '' ? '/' : path));
      return files.map(({ name, type, size, modifyTime }) => ({
        name,
        kind: type === '-' ? 'file' : type === 'd' ? 'folder' : 'other',
        size,
        modified: new Date(modifyTime),
      }));
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  async #run<T>(work: Promise<T>): Promise<T> {
    // It may reject after the connection has ended.
    work.catch(ignore);
    try {
      return await Promise.race([work, this.#ended]);
    } catch (thrown) {
      if (thrown instanceof ServiceError) throw thrown;
      const error = toError(thrown);
      if (!this.isOpen) throw unavailable(error, this.#where);
      // The library prefixes the message of the server with names of its functions.
      throw new ServiceError('backend', error.message.replace(/^(?:[\w-]+(?:->|: ))+/, ''), { cause: error });
    }
  }
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
