/**
 * Reads documents and bundles in other processes, a few at a time: hostile input can take neither the memory of this process
 * nor its time, and large input does not hold up its other requests.
 */
import type { Readable } from 'node:stream';
import type { Config } from '../config.js';
import { Limiter } from '../limiter.js';
import type { ImportedApi } from './imported-api.js';
import type { ReadRequest } from './read-request.js';
import { ReaderChild } from './reader-child.js';
import type { ReadJob } from './reader-messages.js';
import { spool } from './spool.js';

const CONCURRENT_READS = 2;
/**
 * What was read is held until it is stored, and one API may take some hundred megabytes: two are read while one is
 * stored.
 */
const HELD_AT_A_TIME = 3;
/** A process that has read well is kept so long for the next import: starting one takes longer than reading most. */
const KEEP_IDLE_MS = 60_000;
/** In JSON a document takes more bytes: quotes, line ends and, with some encoders, all that is not ASCII. */
const ESCAPES_FACTOR = 2;
/** The members of a body beside the document. */
const OTHER_MEMBERS_BYTES = 65_536;

export type ReaderConfig = Pick<
  Config,
  | 'DATA_DIR'
  | 'SPEC_LIMIT_BYTES'
  | 'BUNDLE_UNPACKED_LIMIT_BYTES'
  | 'BUNDLE_ENTRIES_LIMIT'
  | 'API_BODY_LIMIT_BYTES'
  | 'IMPORT_OPERATIONS_LIMIT'
  | 'IMPORT_READ_TIMEOUT_MS'
  | 'IMPORT_READ_MEMORY_MB'
>;

export class ImportReader {
  readonly #places = new Limiter(CONCURRENT_READS);
  readonly #held = new Limiter(HELD_AT_A_TIME);
  /** All that run. */
  readonly #children = new Set<ReaderChild>();
  #idle: { readonly child: ReaderChild; readonly timer: NodeJS.Timeout } | undefined;
  #isClosed = false;

  constructor(private readonly config: ReaderConfig) {}

  /**
   * Reads the body of a request that imports a document.
   * @param body JSON as it comes, unpacked
   * @param use what is done with it; others may have to wait for its end
   * @throws AppError invalid_json, invalid_input, invalid_spec, body_too_large; and what `use` throws
   */
  async readRequest<T>(body: Readable, use: (request: ReadRequest) => Promise<T>): Promise<T> {
    const { DATA_DIR, SPEC_LIMIT_BYTES } = this.config;
    const spooled = await spool(body, DATA_DIR, SPEC_LIMIT_BYTES * ESCAPES_FACTOR + OTHER_MEMBERS_BYTES);
    try {
      return await this.#held.run(async () => use(await this.#read('request', spooled.file)));
    } finally {
      await spooled.remove();
    }
  }

  /**
   * Reads a bundle.
   * @param file path of the ZIP archive
   * @param use what is done with it; others may have to wait for its end
   * @throws AppError invalid_bundle, invalid_spec, invalid_dependency, body_too_large; and what `use` throws
   */
  readBundle<T>(file: string, use: (api: ImportedApi) => Promise<T>): Promise<T> {
    return this.#held.run(async () => use((await this.#read('bundle', file)).api));
  }

  /** Ends all reading at once; who waits for it gets an error. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle?.timer);
    await Promise.all([...this.#children].map((child) => child.end()));
  }

  #read(kind: ReadJob['kind'], file: string): Promise<ReadRequest> {
    return this.#places.run(async () => {
      if (this.#isClosed) throw closedError();
      const child = this.#take();
      try {
        return await child.read({ kind, file, limits: this.#limits() });
      } catch (thrown) {
        throw this.#isClosed ? closedError() : thrown;
      } finally {
        await this.#giveBack(child);
      }
    });
  }

  #take(): ReaderChild {
    const idle = this.#idle;
    this.#idle = undefined;
    clearTimeout(idle?.timer);
    if (idle?.child.isReusable) return idle.child;
    const { IMPORT_READ_MEMORY_MB: memoryMb, IMPORT_READ_TIMEOUT_MS: timeoutMs } = this.config;
    const child = new ReaderChild({ memoryMb, timeoutMs });
    this.#children.add(child);
    return child;
  }

  async #giveBack(child: ReaderChild): Promise<void> {
    if (!child.isReusable || this.#idle || this.#isClosed) {
      await this.#end(child);
      return;
    }
    const timer = setTimeout(() => {
      this.#idle = undefined;
      void this.#end(child);
    }, KEEP_IDLE_MS).unref();
    this.#idle = { child, timer };
  }

  async #end(child: ReaderChild): Promise<void> {
    await child.end();
    this.#children.delete(child);
  }

  #limits(): ReadJob['limits'] {
    return {
      entries: this.config.BUNDLE_ENTRIES_LIMIT,
      unpackedBytes: this.config.BUNDLE_UNPACKED_LIMIT_BYTES,
      specBytes: this.config.SPEC_LIMIT_BYTES,
      operations: this.config.IMPORT_OPERATIONS_LIMIT,
      // The largest that could be sent by hand.
      codeBytes: this.config.API_BODY_LIMIT_BYTES,
    };
  }
}

function closedError(): Error {
  return new Error('Reading an import was ended: the process is stopping');
}
