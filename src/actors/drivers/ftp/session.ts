/** Sessions with a file server, independent of the protocol, and their pool. */
import { type Abortable, AbortSource, stoppedOnAbort } from '../../driver-call.js';
import { ServiceError } from '../../service-error.js';

/** An entry of a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other';
  readonly size: number;
  readonly modified: Date | null;
}

/**
 * A connection for one operation at a time. Paths are absolute. Every method rejects with a ServiceError: `unavailable`
 * when the connection is lost, `backend` when the server refused.
 */
export interface FileSession {
  /** The absolute path of the folder of the config, without a trailing slash. */
  readonly root: string;
  readonly isOpen: boolean;
  /** The fingerprint of the server's key, if the protocol has one and it was not checked. */
  readonly uncheckedKey?: string | undefined;
  /** One round trip. */
  check(): Promise<void>;
  /** @returns undefined when there is no such file */
  download(path: string): Promise<Buffer | undefined>;
  /** Replaces an existing file; after a failure, the file may be incomplete. */
  upload(path: string, content: Buffer): Promise<void>;
  /** Creates a folder; a refusal of the server is ignored. */
  makeFolder(path: string): Promise<void>;
  /** Renames a file, replacing an existing one. */
  rename(from: string, to: string): Promise<void>;
  /** @returns whether the file existed */
  remove(path: string): Promise<boolean>;
  /** @returns undefined when there is no such folder */
  list(path: string): Promise<FolderEntry[] | undefined>;
  /** Aborts the operation in progress. */
  close(): void;
}

/** Opens a session. @throws ServiceError `unavailable` */
export type OpenSession = (opening: Abortable) => Promise<FileSession>;

/** Reasons common to all protocols. */
export const FTP_REASONS = {
  folder: (where: string, path: string) => `the server at ${where} has no folder "${path}" (base_path)`,
  tooLarge: (what: 'file' | 'list', limitBytes: number) =>
    `the ${what} is larger than the ${limitBytes} bytes a handler can get (SERVICE_ANSWER_MB, up to a limit of its own)`,
} as const;

/** A session that was idle for longer is checked before use, because the server may have closed it. */
const FRESH_MS = 5_000;

/** A few sessions with one server, opened on demand, each used by one call at a time. */
export class SessionPool {
  readonly #open: OpenSession;
  readonly #freshMs: number;
  readonly #idle: { readonly session: FileSession; readonly since: number }[] = [];
  readonly #used = new Set<FileSession>();
  readonly #opening = new Set<AbortSource>();
  #isClosed = false;

  /** @param freshMs how long a session may be idle before it is checked */
  constructor(open: OpenSession, freshMs = FRESH_MS) {
    this.#open = open;
    this.#freshMs = freshMs;
  }

  /** Uses a session exclusively. When the call is aborted, the session is closed, which fails its operation. */
  async use<T>(work: (session: FileSession) => Promise<T>, call: Abortable): Promise<T> {
    const session = await this.#take(call);
    try {
      return await stoppedOnAbort(
        call,
        () => session.close(),
        () => work(session),
      );
    } catch (thrown) {
      // Its state is unknown unless the server has refused.
      if (!(thrown instanceof ServiceError) || thrown.kind === 'unavailable') session.close();
      throw thrown;
    } finally {
      this.#release(session);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const opening of this.#opening) opening.abort();
    for (const { session } of this.#idle.splice(0)) session.close();
    for (const session of this.#used) session.close();
  }

  async #take(call: Abortable): Promise<FileSession> {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      const { session, since } = idle;
      this.#used.add(session);
      if (session.isOpen && (Date.now() - since < this.#freshMs || (await answers(session, call))))
        return session;
      session.close();
      this.#used.delete(session);
    }
    const opening = new AbortSource();
    this.#opening.add(opening);
    const session = await stoppedOnAbort(
      call,
      () => opening.abort(),
      () => this.#open(opening),
    ).finally(() => this.#opening.delete(opening));
    this.#used.add(session);
    // Closed while it was being opened.
    if (this.#isClosed) session.close();
    return session;
  }

  #release(session: FileSession): void {
    this.#used.delete(session);
    if (session.isOpen && !this.#isClosed) this.#idle.push({ session, since: Date.now() });
    else session.close();
  }
}

async function answers(session: FileSession, call: Abortable): Promise<boolean> {
  return stoppedOnAbort(
    call,
    () => session.close(),
    () => session.check(),
  ).then(
    () => true,
    () => false,
  );
}
