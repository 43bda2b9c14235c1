/**
 * Reads documents and bundles in processes of their own, one each and a few at a time: hostile input can take neither the
 * memory of this process nor its time, and large input does not hold up its other requests.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Config } from '../config.js';
import { AppError } from '../errors.js';
import { Limiter } from '../limiter.js';
import type { ImportedApi, ImportedEndpoint } from './imported-api.js';
import type { ReadRequest } from './read-request.js';
import type { ReadAnswer, ReadJob } from './reader-messages.js';
import { spool } from './spool.js';

const PROGRAM = fileURLToPath(new URL('./reader-process.js', import.meta.url));

const CONCURRENT_READS = 2;
/** In JSON a document takes more bytes: quotes, line ends and, with some encoders, all that is not ASCII. */
const ESCAPES_FACTOR = 2;
/** The members of a body beside the document. */
const OTHER_MEMBERS_BYTES = 65_536;
/** Of what the process says when it crashes. */
const KEPT_OUTPUT = 16_384;

// The process of a document that needs too much memory aborts; what it held is not to be left on disk.
const START_SCRIPT = 'ulimit -c 0 && exec "$@"';

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
  private readonly places = new Limiter(CONCURRENT_READS);
  private readonly children = new Set<ChildProcess>();
  private isClosed = false;

  constructor(private readonly config: ReaderConfig) {}

  /**
   * Reads the body of a request that imports a document.
   * @param body JSON as it comes, unpacked
   * @throws AppError invalid_json, invalid_input, invalid_spec, body_too_large
   */
  async readRequest(body: Readable): Promise<ReadRequest> {
    const { DATA_DIR, SPEC_LIMIT_BYTES } = this.config;
    const spooled = await spool(body, DATA_DIR, SPEC_LIMIT_BYTES * ESCAPES_FACTOR + OTHER_MEMBERS_BYTES);
    try {
      return await this.read('request', spooled.file);
    } finally {
      await spooled.remove();
    }
  }

  /**
   * Reads a bundle.
   * @param file path of the ZIP archive
   * @throws AppError invalid_bundle, invalid_spec, invalid_dependency, body_too_large
   */
  async readBundle(file: string): Promise<ImportedApi> {
    const { api } = await this.read('bundle', file);
    return api;
  }

  /** Ends all reading at once; who waits for it gets an error. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.children].map(end));
  }

  private async read(kind: ReadJob['kind'], file: string): Promise<ReadRequest> {
    return await this.places.run(async () => {
      if (this.isClosed) throw closedError();
      const child = this.start();
      this.children.add(child);
      try {
        return await this.result(child, { kind, file, limits: this.limits() });
      } finally {
        await end(child);
        this.children.delete(child);
      }
    });
  }

  private start(): ChildProcess {
    const heap = `--max-old-space-size=${this.config.IMPORT_READ_MEMORY_MB}`;
    return spawn('/bin/sh', ['-c', START_SCRIPT, 'sh', process.execPath, heap, PROGRAM], {
      // Nothing of what this process is configured with is its business.
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
  }

  private result(child: ChildProcess, job: ReadJob): Promise<ReadRequest> {
    const endpoints: ImportedEndpoint[] = [];
    const outputOf = collectOutput(child);
    return new Promise((resolve, reject) => {
      const { IMPORT_READ_TIMEOUT_MS: limit } = this.config;
      const timer = setTimeout(() => {
        reject(refusal(job, `takes longer than ${limit} ms (IMPORT_READ_TIMEOUT_MS) to read`));
      }, limit);
      child.on('message', (answer: ReadAnswer) => {
        if (answer.type === 'endpoints') endpoints.push(...answer.endpoints);
        else if (answer.type === 'end') resolve({ fields: answer.fields, api: { ...answer.api, endpoints } });
        else if (answer.type === 'refused') reject(new AppError(answer.code, answer.message));
        else reject(new Error(`Reading an import failed: ${answer.stack}`));
      });
      child.on('error', (error) => reject(error));
      // After its end there may still be output to come; `close` is when all has come.
      child.on('close', (code, signal) => {
        clearTimeout(timer);
        reject(this.isClosed ? closedError() : this.crash(job, outputOf(), code, signal));
      });
      child.send(job, (error) => {
        if (error) child.kill('SIGKILL');
      });
    });
  }

  private crash(job: ReadJob, output: string, code: number | null, signal: string | null): Error {
    const { IMPORT_READ_MEMORY_MB: limit } = this.config;
    if (/heap out of memory|allocation failed/i.test(output)) {
      return refusal(job, `needs more memory than ${limit} MiB (IMPORT_READ_MEMORY_MB) to read`);
    }
    return new Error(`The process that reads imports ended (${signal ?? `exit code ${code}`}): ${output}`);
  }

  private limits(): ReadJob['limits'] {
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

/** Ends a process, and resolves when it is gone. */
async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** Keeps the last of what a process prints. */
function collectOutput(child: ChildProcess): () => string {
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-KEPT_OUTPUT);
  });
  return () => output;
}

function refusal({ kind }: ReadJob, message: string): AppError {
  return kind === 'bundle'
    ? new AppError('invalid_bundle', `The bundle ${message}`)
    : new AppError('invalid_spec', `body.spec: The document ${message}`);
}

function closedError(): Error {
  return new Error('Reading an import was ended: the process is stopping');
}
