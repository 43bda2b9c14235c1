/** Sessions over FTP, and over FTP with TLS (explicit: AUTH TLS). */
import { isIP } from 'node:net';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { Client, type FileInfo, FileType, FTPError } from 'basic-ftp';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import { networkReason, unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';
import { type FileSession, type FolderEntry, REASONS } from './ftp-session.js';

type Config = ServiceConfig<'ftp'>;

const TICKET_LIMIT_MS = 250;
const TICKET_STEP_MS = 5;

/** The server closes the connection, by whatever is wrong with it. */
const CLOSING = 421;
const NOT_LOGGED_IN = 530;
/** Missing, not allowed, or no file at all: servers do not tell these apart. */
const NOT_AVAILABLE = 550;

/** @throws ServiceError `unavailable` */
export async function openFtpSession(config: Config, signal: AbortSignal): Promise<FileSession> {
  const where = `${config.host}:${config.port}`;
  const client = new Client(config.timeout_seconds * 1000);
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      client.close();
      reject(new ServiceError('unavailable', `${where} did not answer in time`));
    };
  });
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const root = await Promise.race([logIn(client, config, where), aborted]);
    return new FtpSession(client, root, where);
  } catch (thrown) {
    client.close();
    throw thrown instanceof ServiceError ? thrown : unavailable(thrown, where);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** @returns the complete path of the folder of the config */
async function logIn(client: Client, config: Config, where: string): Promise<string> {
  const refused = (reason: string) => (thrown: unknown) => {
    throw thrown instanceof FTPError ? new ServiceError('unavailable', reason, { cause: thrown }) : thrown;
  };
  await client.connect(config.host, config.port);
  if (config.protocol === 'ftps') {
    const tls = {
      host: config.host,
      ...(isIP(config.host) === 0 && { servername: config.host }),
      ...(config.ssl_root_cert && { ca: config.ssl_root_cert }),
    };
    await client.useTLS(tls).catch(refused(`the server at ${where} does not offer TLS (AUTH TLS)`));
  }
  await client.sendIgnoringError('OPTS UTF8 ON');
  await client.login(config.username, config.password ?? undefined).catch((thrown: unknown) => {
    if (!(thrown instanceof FTPError)) throw thrown;
    return refused(
      thrown.code === NOT_LOGGED_IN
        ? REASONS.login(where)
        : `the server at ${where} refused: ${thrown.message}`,
    )(thrown);
  });
  await client.useDefaultSettings();
  await client.cd(config.base_path).catch(refused(REASONS.folder(where, config.base_path)));
  return (await client.pwd()).replace(/\/+$/, '');
}

class FtpSession implements FileSession {
  readonly root: string;
  readonly #client: Client;
  readonly #where: string;

  constructor(client: Client, root: string, where: string) {
    this.#client = client;
    this.root = root;
    this.#where = where;
  }

  get isOpen(): boolean {
    return !this.#client.closed;
  }

  async check(): Promise<void> {
    await this.#run(() => this.#client.send('NOOP'));
  }

  async download(path: string, limitBytes: number): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let size = 0;
    const collect = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        size += chunk.length;
        chunks.push(chunk);
        done(size > limitBytes ? new ServiceError('invalid', REASONS.tooLarge(limitBytes)) : null);
      },
    });
    try {
      await this.#run(() => this.#client.downloadTo(collect, path));
    } catch (thrown) {
      if (await this.#isMissing(thrown, path)) return undefined;
      throw thrown;
    }
    return Buffer.concat(chunks);
  }

  async upload(path: string, content: Buffer): Promise<void> {
    const { ftp } = this.#client;
    const session = ftp.tlsSessionStore;
    const isHandshakeOver = () => ftp.tlsSessionStore !== session;
    const source = ftp.hasTLS ? patiently(content, ftp, isHandshakeOver) : [content];
    await this.#run(() => this.#client.uploadFrom(Readable.from(source), path));
  }

  async makeFolder(path: string): Promise<void> {
    await this.#run(() => this.#client.sendIgnoringError(`MKD ${path}`));
  }

  async rename(from: string, to: string): Promise<void> {
    try {
      await this.#run(() => this.#client.rename(from, to));
    } catch (thrown) {
      // Some servers do not rename over what is there.
      if (!isRefusal(thrown) || !(await this.remove(to))) throw thrown;
      await this.#run(() => this.#client.rename(from, to));
    }
  }

  async remove(path: string): Promise<boolean> {
    try {
      await this.#run(() => this.#client.remove(path));
      return true;
    } catch (thrown) {
      if (await this.#isMissing(thrown, path)) return false;
      throw thrown;
    }
  }

  async list(path: string): Promise<FolderEntry[] | undefined> {
    // An argument of LIST would be a pattern to some servers.
    try {
      await this.#run(() => this.#client.cd(path === '' ? '/' : path));
    } catch (thrown) {
      if (isRefusal(thrown, NOT_AVAILABLE)) return undefined;
      throw thrown;
    }
    const files = await this.#run(() => this.#client.list());
    return files.filter(({ name }) => name !== '.' && name !== '..').map(describe);
  }

  close(): void {
    this.#client.close();
  }

  /** Whether the server refused because there is no such file: only the list of the folder tells. */
  async #isMissing(refusal: unknown, path: string): Promise<boolean> {
    if (!isRefusal(refusal, NOT_AVAILABLE)) return false;
    const slash = path.lastIndexOf('/');
    const siblings = await this.list(path.slice(0, slash));
    return !siblings?.some(({ name }) => name === path.slice(slash + 1));
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof ServiceError) throw thrown;
      const error = toError(thrown);
      if (error instanceof FTPError && error.code !== CLOSING) {
        throw new ServiceError('backend', error.message, { cause: error });
      }
      const reason = /^Timeout/.test(error.message) ? `${this.#where} did not answer in time` : undefined;
      throw unavailable(error, this.#where, reason ?? networkReason(error, this.#where));
    }
  }
}

/**
 * The content, and its end only when the server has sent its session ticket, with which its handshake is over: closing
 * earlier resets the connection under vsftpd, which then breaks off, or loses what it has not yet read.
 */
async function* patiently(
  content: Buffer,
  ftp: Client['ftp'],
  isHandshakeOver: () => boolean,
): AsyncGenerator<Buffer> {
  if (content.length > 0) yield content;
  // There is one only since the transfer has begun.
  const { dataSocket } = ftp;
  if (!(dataSocket instanceof TLSSocket) || dataSocket.getProtocol() !== 'TLSv1.3') return;
  // A server may do without tickets.
  for (let waited = 0; waited < TICKET_LIMIT_MS && !isHandshakeOver(); waited += TICKET_STEP_MS) {
    await delay(TICKET_STEP_MS);
  }
}

function isRefusal(thrown: unknown, code?: number): boolean {
  if (!(thrown instanceof ServiceError) || !(thrown.cause instanceof FTPError)) return false;
  return code === undefined || thrown.cause.code === code;
}

function describe({ name, type, size, modifiedAt }: FileInfo): FolderEntry {
  const kind = type === FileType.File ? 'file' : type === FileType.Directory ? 'folder' : 'other';
  return { name, kind, size, modified: modifiedAt ?? null };
}
