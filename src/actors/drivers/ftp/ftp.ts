/** Sessions over FTP and FTP with explicit TLS (AUTH TLS). */
import { isIP } from 'node:net';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { Client, type FileInfo, FileType, FTPError } from 'basic-ftp';
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import type { Abortable } from '../../driver-call.js';
import { REASONS, unavailable } from '../../failures.js';
import { ServiceError } from '../../service-error.js';
import { type FileSession, type FolderEntry, FTP_REASONS } from './session.js';

type Config = ServiceConfig<'ftp'>;

const TICKET_TIMEOUT_MS = 250;
const TICKET_POLL_MS = 5;

/** An entry takes much more memory than its line. */
const MAX_LISTING_BYTES = 40 * 1024 ** 2;

/** Service not available: the server closes the connection. */
const CLOSING = 421;
const NOT_LOGGED_IN = 530;
/** Missing, not permitted, or not a file: servers use one code for these. */
const NOT_AVAILABLE = 550;

/**
 * @param limitBytes of a file, or of a list
 * @throws ServiceError `unavailable`
 */
export async function openFtpSession(
  config: Config,
  opening: Abortable,
  limitBytes: number,
): Promise<FileSession> {
  const where = `${config.host}:${config.port}`;
  const client = new Client(config.timeout_seconds * 1000, {
    allowSeparateTransferHost: false,
    maxListingBytes: listingBytes(limitBytes),
  });
  try {
    const root = await new Promise<string>((resolve, reject) => {
      opening.onAbort(() => reject(new ServiceError('unavailable', REASONS.silent(where))));
      logIn(client, config, where).then(resolve, reject);
    });
    return new FtpSession(client, root, where, limitBytes);
  } catch (thrown) {
    client.close();
    throw unavailable(thrown, where);
  } finally {
    opening.onAbort(undefined);
  }
}

/** @returns the absolute path of the folder of the config */
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
      thrown.code === NOT_LOGGED_IN ? REASONS.login(where) : REASONS.refused(where, thrown.message),
    )(thrown);
  });
  await client.useDefaultSettings();
  await client.cd(config.base_path).catch(refused(FTP_REASONS.folder(where, config.base_path)));
  return (await client.pwd()).replace(/\/+$/, '');
}

class FtpSession implements FileSession {
  readonly root: string;
  readonly #client: Client;
  readonly #where: string;
  readonly #limitBytes: number;

  constructor(client: Client, root: string, where: string, limitBytes: number) {
    this.#client = client;
    this.root = root;
    this.#where = where;
    this.#limitBytes = limitBytes;
  }

  get isOpen(): boolean {
    return !this.#client.closed;
  }

  async check(): Promise<void> {
    await this.#run(() => this.#client.send('NOOP'));
  }

  async download(path: string): Promise<Buffer | undefined> {
    const limitBytes = this.#limitBytes;
    const chunks: Buffer[] = [];
    let size = 0;
    const collect = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        size += chunk.length;
        chunks.push(chunk);
        done(
          size > limitBytes ? new ServiceError('invalid', FTP_REASONS.tooLarge('file', limitBytes)) : null,
        );
      },
    });
    try {
      await this.#run(() => this.#client.downloadTo(collect, path));
    } catch (thrown) {
      // What the server says about it would be taken for the answer to the next command.
      if (size > limitBytes) this.close();
      if (await this.#isMissing(thrown, path)) return undefined;
      throw thrown;
    }
    return Buffer.concat(chunks);
  }

  async upload(path: string, content: Buffer): Promise<void> {
    const { ftp } = this.#client;
    const session = ftp.tlsSessionStore;
    const isHandshakeComplete = () => ftp.tlsSessionStore !== session;
    const source = ftp.hasTLS ? endAfterHandshake(content, ftp, isHandshakeComplete) : [content];
    await this.#run(() => this.#client.uploadFrom(Readable.from(source), path));
  }

  async makeFolder(path: string): Promise<void> {
    await this.#run(() => this.#client.sendIgnoringError(`MKD ${path}`));
  }

  async rename(from: string, to: string): Promise<void> {
    try {
      await this.#run(() => this.#client.rename(from, to));
    } catch (thrown) {
      // Some servers do not overwrite an existing file.
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
    // Some servers treat an argument of LIST as a pattern.
    try {
      await this.#run(() => this.#client.cd(path === '' ? '/' : path));
    } catch (thrown) {
      if (isRefusal(thrown, NOT_AVAILABLE)) return undefined;
      throw thrown;
    }
    const files = await this.#run(() => this.#client.list()).catch((thrown: unknown) => {
      if (!(thrown instanceof ServiceError) || !/Maximum bytes exceeded/.test(thrown.message)) throw thrown;
      this.close();
      throw new ServiceError('invalid', FTP_REASONS.tooLarge('list', listingBytes(this.#limitBytes)));
    });
    return files.filter(({ name }) => name !== '.' && name !== '..').map(describe);
  }

  close(): void {
    this.#client.close();
  }

  /** Whether a refusal means that the file does not exist, according to the list of its folder. */
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
      const isTimeout = /^Timeout/.test(error.message);
      throw unavailable(error, this.#where, isTimeout ? REASONS.silent(this.#where) : undefined);
    }
  }
}

function listingBytes(limitBytes: number): number {
  return Math.min(limitBytes, MAX_LISTING_BYTES);
}

/**
 * The content; its end waits for the session ticket, which completes the TLS handshake. Closing earlier resets the
 * connection of vsftpd, which then aborts or loses data that it has not read.
 */
async function* endAfterHandshake(
  content: Buffer,
  ftp: Client['ftp'],
  isHandshakeComplete: () => boolean,
): AsyncGenerator<Buffer> {
  if (content.length > 0) yield content;
  // It exists only during a transfer.
  const { dataSocket } = ftp;
  if (!(dataSocket instanceof TLSSocket) || dataSocket.getProtocol() !== 'TLSv1.3') return;
  // Limited, because a server may not send tickets.
  for (let waited = 0; waited < TICKET_TIMEOUT_MS && !isHandshakeComplete(); waited += TICKET_POLL_MS) {
    await delay(TICKET_POLL_MS);
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
