/** Sessions over SFTP. */
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import SftpClient from 'ssh2-sftp-client';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import { errorCode, networkReason, unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';
import { type FileSession, type FolderEntry, REASONS } from './ftp-session.js';

type Config = ServiceConfig<'ftp'>;

/** A server that does not answer to this many signs of life in a row is dead. */
const SIGNS_OF_LIFE = 3;

/** @throws ServiceError `unavailable` */
export async function openSftpSession(config: Config, signal: AbortSignal): Promise<FileSession> {
  const where = `${config.host}:${config.port}`;
  // Our own socket: closing it is what ends a session at once, whatever it is doing.
  const socket = connect({ host: config.host, port: config.port ?? 22, keepAlive: true, noDelay: true });
  const destroy = () => socket.destroy();
  if (signal.aborted) destroy();
  signal.addEventListener('abort', destroy, { once: true });
  const ended = endOf(socket, where);
  let offered: string | undefined;
  try {
    await Promise.race([connected(socket), ended]);
    const silent = { error: ignore, end: ignore, close: ignore };
    const client = new SftpClient('services', silent);
    const options: SftpClient.ConnectOptions = {
      sock: socket,
      ...(config.username !== undefined && { username: config.username }),
      ...(config.password && { password: config.password }),
      ...(config.private_key && { privateKey: config.private_key }),
      readyTimeout: config.timeout_seconds * 1000,
      keepaliveInterval: Math.ceil((config.timeout_seconds * 1000) / SIGNS_OF_LIFE),
      keepaliveCountMax: SIGNS_OF_LIFE,
      hostVerifier: (key: Buffer) => {
        offered = `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
        return config.host_key === undefined || offered === config.host_key.replace(/=+$/, '');
      },
    };
    await Promise.race([client.connect(options), ended]);
    const root = await Promise.race([client.realPath(config.base_path), ended]);
    if (root === '' || (await Promise.race([client.exists(root), ended])) !== 'd') {
      throw new ServiceError('unavailable', REASONS.folder(where, config.base_path));
    }
    const uncheckedKey = config.host_key === undefined ? offered : undefined;
    return new SftpSession(client, socket, ended, root.replace(/\/+$/, ''), where, uncheckedKey);
  } catch (thrown) {
    destroy();
    if (thrown instanceof ServiceError) throw thrown;
    throw unavailable(thrown, where, refusal(toError(thrown), where, offered));
  } finally {
    signal.removeEventListener('abort', destroy);
  }
}

function ignore(): void {
  // What went wrong is told by the call that was under way.
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('connect', () => resolve()));
}

/** Rejects when the socket is closed, so that nobody waits for an answer that cannot come any more. */
function endOf(socket: Socket, where: string): Promise<never> {
  const ended = new Promise<never>((_resolve, reject) => {
    socket.once('error', (error) => reject(unavailable(error, where)));
    socket.once('close', () =>
      reject(new ServiceError('unavailable', `the connection to ${where} was closed`)),
    );
  });
  // Also when nobody is waiting.
  ended.catch(ignore);
  return ended;
}

/** What a refused connection means for whoever has written the config. */
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
  if (/Timed out/i.test(message)) return `${where} did not answer in time`;
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
      if (size > limitBytes) throw new ServiceError('invalid', REASONS.tooLarge(limitBytes));
      // Without a destination it is a buffer.
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
      // It is an extension of OpenSSH.
      if (!isRefusal(thrown) || !/does not support/.test(thrown.message)) throw thrown;
    }
    try {
      await this.#run(this.#client.rename(from, to));
    } catch (thrown) {
      // Without the extension, renaming need not replace what is there.
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
    // It goes on failing after the connection has ended, when nobody listens any more.
    work.catch(ignore);
    try {
      return await Promise.race([work, this.#ended]);
    } catch (thrown) {
      if (thrown instanceof ServiceError) throw thrown;
      const error = toError(thrown);
      if (!this.isOpen) throw unavailable(error, this.#where, networkReason(error, this.#where));
      // The library puts the names of its own functions before what the server said.
      throw new ServiceError('backend', error.message.replace(/^(?:[\w-]+(?:->|: ))+/, ''), { cause: error });
    }
  }
}

/** Whether the server said no, and the connection is as good as before. */
function isRefusal(thrown: unknown): thrown is ServiceError {
  return thrown instanceof ServiceError && thrown.kind === 'backend';
}

function isMissing(thrown: unknown): boolean {
  if (!isRefusal(thrown)) return false;
  const { cause } = thrown;
  const numeric = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return numeric === 2 || errorCode(cause) === 'ENOENT' || /no such file/i.test(thrown.message);
}
