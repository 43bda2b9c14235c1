/**
 * Parses documents and bundles in child processes, a few at a time: hostile input cannot exhaust the memory of this
 * process, and large input does not block its event loop. Owners take turns: who has many of them keeps no others
 * waiting.
 */
import type { Readable } from 'node:stream';
import type { Config } from '../config.js';
import type { ValidateMode } from '../model/policies/validate.js';
import { SpoolRoom } from '../util/spool-room.js';
import { Turns } from '../util/turns.js';
import type { Folder } from './folder/folder.js';
import type { FolderToRead } from './folder/read-folder.js';
import type { ImportedApi } from './imported-api.js';
import type { ReadRequest } from './read-request.js';
import { ReaderChild } from './reader-child.js';
import type { ReadJob } from './reader-messages.js';
import { spool } from './spool.js';

const CONCURRENT_READS = 2;
/**
 * A parsed API, which may take hundreds of megabytes, is held in memory until it is stored: two are parsed while one is
 * stored.
 */
const CONCURRENT_IMPORTS = 3;
/** There may be so many more of each, for owners that have none. */
const BEYOND = 2;
/** An idle child is kept this long for the next import: starting one takes longer than parsing most documents. */
const IDLE_TIMEOUT_MS = 60_000;
/**
 * Allowance for escapes in the JSON string of a document: quotes, line ends and, with some encoders, non-ASCII text.
 */
const ESCAPES_FACTOR = 2;
/** Allowance for the other members of a body. */
const OTHER_MEMBERS_BYTES = 65_536;

export type ReaderConfig = Pick<
  Config,
  | 'DATA_DIR'
  | 'SPEC_LIMIT_BYTES'
  | 'BUNDLE_LIMIT_BYTES'
  | 'BUNDLE_UNPACKED_LIMIT_BYTES'
  | 'BUNDLE_ENTRIES_LIMIT'
  | 'API_BODY_LIMIT_BYTES'
  | 'SOURCE_FILES_LIMIT'
  | 'IMPORT_OPERATIONS_LIMIT'
  | 'IMPORT_READ_TIMEOUT_MS'
  | 'IMPORT_READ_MEMORY_MB'
  | 'IMPORTS_QUEUED_LIMIT'
  | 'IMPORTS_SPOOLED_LIMIT_BYTES'
>;

export class ImportReader {
  readonly #config: ReaderConfig;
  /** Room on the disk for bodies that wait to be read. */
  readonly room: SpoolRoom;
  readonly #reads = new Turns({ places: CONCURRENT_READS, beyond: BEYOND });
  readonly #imports = new Turns({ places: CONCURRENT_IMPORTS, beyond: BEYOND });
  /** All running children, including the idle one. */
  readonly #children = new Set<ReaderChild>();
  #idle: { readonly child: ReaderChild; readonly timer: NodeJS.Timeout } | undefined;
  #isClosed = false;

  constructor(config: ReaderConfig) {
    this.#config = config;
    this.room = new SpoolRoom({
      title: 'imports and plans that have not been read yet',
      bodies: config.IMPORTS_QUEUED_LIMIT,
      bodiesSetting: 'IMPORTS_QUEUED_LIMIT',
      bytes: config.IMPORTS_SPOOLED_LIMIT_BYTES,
      bytesSetting: 'IMPORTS_SPOOLED_LIMIT_BYTES',
      code: 'too_many_imports',
    });
  }

  /**
   * Reads the body of a request that imports a document.
   * @param owner whose turn it takes
   * @param body JSON, decompressed
   * @param validation whether requests are to be validated as the document says
   * @param store called with the result; other imports may wait until it resolves
   * @throws AppError invalid_json, invalid_input, invalid_spec, body_too_large, import_timeout, import_memory,
   * too_many_imports, busy; and the errors of `store`
   */
  async readRequest<T>(
    owner: string,
    body: Readable,
    store: (request: ReadRequest) => Promise<T>,
    validation: ValidateMode = 'off',
  ): Promise<T> {
    const limit = this.#config.SPEC_LIMIT_BYTES * ESCAPES_FACTOR + OTHER_MEMBERS_BYTES;
    return this.#spooled(owner, body, limit, (file) =>
      this.#imports.run(owner, async () => store(await this.#read(owner, 'request', file, validation))),
    );
  }

  /**
   * Reads a bundle.
   * @param owner whose turn it takes
   * @param file path of the ZIP archive, which has its place in the room
   * @param validation whether requests are to be validated as the document says
   * @param store called with the result; other imports may wait until it resolves
   * @throws AppError invalid_bundle, invalid_spec, invalid_dependency, body_too_large, import_timeout, import_memory;
   * and the errors of `store`
   */
  readBundle<T>(
    owner: string,
    file: string,
    store: (api: ImportedApi) => Promise<T>,
    validation: ValidateMode = 'off',
  ): Promise<T> {
    return this.#imports.run(owner, async () =>
      store((await this.#read(owner, 'bundle', file, validation)).api),
    );
  }

  /**
   * Reads a folder that describes an installation.
   * @param owner whose turn it takes
   * @param body the ZIP, or JSON with its files
   * @param use called with the result; others may wait until it resolves
   * @throws AppError invalid_folder, invalid_json, invalid_input, body_too_large, import_timeout, import_memory,
   * too_many_imports, busy; and the errors of `use`
   */
  async readFolder<T>(
    owner: string,
    body: Readable,
    folder: Omit<FolderToRead, 'file'>,
    use: (folder: Folder) => Promise<T>,
  ): Promise<T> {
    return this.#spooled(owner, body, this.#config.BUNDLE_LIMIT_BYTES, (file) =>
      this.#imports.run(owner, async () =>
        use(
          await this.#withChild(owner, (child) =>
            child.readFolder({
              ...{ kind: 'folder', file, limits: this.#limits(), validation: 'off', folder },
            }),
          ),
        ),
      ),
    );
  }

  /** Kills all children; reads in progress reject. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle?.timer);
    await Promise.all([...this.#children].map((child) => child.end()));
  }

  /** Writes a body to the disk, if there is room, and removes it when it was used. */
  async #spooled<T>(
    owner: string,
    body: Readable,
    limitBytes: number,
    use: (file: string) => Promise<T>,
  ): Promise<T> {
    const place = this.room.begin(owner);
    try {
      this.#prepare();
      const spooled = await spool(body, this.#config.DATA_DIR, limitBytes, place);
      try {
        return await use(spooled.file);
      } finally {
        await spooled.remove();
      }
    } finally {
      place.end();
    }
  }

  #read(owner: string, kind: ReadJob['kind'], file: string, validation: ValidateMode): Promise<ReadRequest> {
    return this.#withChild(owner, (child) => child.read({ kind, file, limits: this.#limits(), validation }));
  }

  #withChild<T>(owner: string, read: (child: ReaderChild) => Promise<T>): Promise<T> {
    return this.#reads.run(owner, async () => {
      if (this.#isClosed) throw closedError();
      const child = this.#acquire();
      try {
        return await read(child);
      } catch (thrown) {
        throw this.#isClosed ? closedError() : thrown;
      } finally {
        await this.#release(child);
      }
    });
  }

  /** Starts a child while a body still arrives. */
  #prepare(): void {
    if (!this.#idle && !this.#isClosed && this.#reads.active < CONCURRENT_READS) this.#keep(this.#start());
  }

  #acquire(): ReaderChild {
    const idle = this.#idle;
    this.#idle = undefined;
    clearTimeout(idle?.timer);
    return idle?.child.isReusable ? idle.child : this.#start();
  }

  #start(): ReaderChild {
    const { IMPORT_READ_MEMORY_MB: memoryMb, IMPORT_READ_TIMEOUT_MS: timeoutMs } = this.#config;
    const child = new ReaderChild({ memoryMb, timeoutMs });
    this.#children.add(child);
    return child;
  }

  async #release(child: ReaderChild): Promise<void> {
    if (!child.isReusable || this.#idle || this.#isClosed) {
      await this.#end(child);
      return;
    }
    this.#keep(child);
  }

  #keep(child: ReaderChild): void {
    const timer = setTimeout(() => {
      this.#idle = undefined;
      void this.#end(child);
    }, IDLE_TIMEOUT_MS).unref();
    this.#idle = { child, timer };
  }

  async #end(child: ReaderChild): Promise<void> {
    await child.end();
    this.#children.delete(child);
  }

  #limits(): ReadJob['limits'] {
    return {
      entries: this.#config.BUNDLE_ENTRIES_LIMIT,
      unpackedBytes: this.#config.BUNDLE_UNPACKED_LIMIT_BYTES,
      specBytes: this.#config.SPEC_LIMIT_BYTES,
      operations: this.#config.IMPORT_OPERATIONS_LIMIT,
      // The limit for code that is sent to the API directly.
      codeBytes: this.#config.API_BODY_LIMIT_BYTES,
      sourceFiles: this.#config.SOURCE_FILES_LIMIT,
    };
  }
}

function closedError(): Error {
  return new Error('The import was aborted: the process is stopping');
}
