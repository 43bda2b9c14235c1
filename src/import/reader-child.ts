/** A child process that parses documents and bundles, one at a time: `reader-process.ts`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AppError } from '../errors.js';
import type { ImportedEndpoint } from '../model/imported-parts.js';
import type { Folder } from './folder/folder.js';
import { FolderParts } from './folder/parts.js';
import type { ReadRequest } from './read-request.js';
import type { ReadAnswer, ReadJob } from './reader-messages.js';

const ENTRY = fileURLToPath(new URL('./reader-process.js', import.meta.url));
/** Characters of stderr that are kept for the error of a crash. */
const MAX_OUTPUT = 16_384;
/**
 * A child with more resident memory than this is not reused, MiB. A new one has about 90, one that has read 13 MB about
 * 200. One that has read a document before reads the next in two thirds of the time.
 */
const REUSABLE_MEMORY_MB = 256;

// No core dump when the child aborts at its heap limit. Lower priority than requests: large documents take a second or
// two of CPU time.
const START_SCRIPT = 'ulimit -c 0 && exec nice -n 10 "$@"';

export interface ReaderChildLimits {
  /** Heap limit, MiB. */
  readonly memoryMb: number;
  /** Longest time of one job, milliseconds. */
  readonly timeoutMs: number;
}

/** Takes the answers of a job; returns its result with the last one. */
type Collect<T> = (answer: ReadAnswer) => T | undefined;

export class ReaderChild {
  readonly #limits: ReaderChildLimits;
  readonly #child: ChildProcess;
  #output = '';
  #isReusable = true;

  constructor(limits: ReaderChildLimits) {
    this.#limits = limits;
    const heap = `--max-old-space-size=${limits.memoryMb}`;
    this.#child = spawn('/bin/sh', ['-c', START_SCRIPT, 'sh', process.execPath, heap, ENTRY], {
      // Secrets of this process's configuration stay out of the child.
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MAX_OUTPUT);
    });
    // `read` handles errors; this listener keeps one between two reads from being thrown.
    this.#child.on('error', () => undefined);
  }

  /** False after a failure, or when its memory has grown too large: then it must be ended. */
  get isReusable(): boolean {
    return this.#isReusable && this.#isAlive;
  }

  /**
   * Runs one job; must not be called concurrently.
   * @throws AppError for an invalid document or bundle, and for one that exceeds a limit; Error for an internal failure
   */
  read(job: ReadJob): Promise<ReadRequest> {
    const endpoints: ImportedEndpoint[] = [];
    const contents = new Map<string, Uint8Array>();
    return this.#guarded(job, (answer) => {
      if (answer.type === 'endpoints') endpoints.push(...answer.endpoints);
      if (answer.type === 'contents')
        for (const [digest, content] of answer.contents) contents.set(digest, content);
      if (answer.type !== 'end') return undefined;
      return { fields: answer.fields, api: { ...answer.api, endpoints, contents } };
    });
  }

  /** The same for a folder. */
  readFolder(job: ReadJob): Promise<Folder> {
    const collected = new FolderParts();
    return this.#guarded(job, (answer) => {
      if (answer.type === 'part') collected.add(answer.part);
      return answer.type === 'folder-end' ? collected.folder() : undefined;
    });
  }

  async #guarded<T>(job: ReadJob, collect: Collect<T>): Promise<T> {
    try {
      return await this.#run(job, collect);
    } catch (thrown) {
      // Its state is unknown.
      this.#isReusable = false;
      throw thrown;
    }
  }

  /** Kills the child and resolves when it has exited; a read in progress rejects. */
  async end(): Promise<void> {
    if (!this.#isAlive) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  get #isAlive(): boolean {
    const { pid, exitCode, signalCode } = this.#child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  #run<T>(job: ReadJob, collect: Collect<T>): Promise<T> {
    const settled = new AbortController();
    const child = this.#child;
    return new Promise<T>((resolve, reject) => {
      const { timeoutMs } = this.#limits;
      const timer = setTimeout(() => {
        reject(
          limitError(
            'import_timeout',
            job,
            `takes longer than ${timeoutMs} ms, which IMPORT_READ_TIMEOUT_MS limits`,
          ),
        );
      }, timeoutMs);
      const onMessage = (answer: ReadAnswer) => {
        if (answer.type === 'invalid') {
          reject(new AppError(answer.code, answer.message, { details: answer.details }));
        } else if (answer.type === 'failed') {
          reject(new Error(`The import reader failed: ${answer.stack}`));
        } else {
          if ('memoryMb' in answer && answer.memoryMb > REUSABLE_MEMORY_MB) this.#isReusable = false;
          const result = collect(answer);
          if (result !== undefined) resolve(result);
        }
      };
      // Unlike `exit`, `close` is emitted after all output has been received.
      const onClose = (code: number | null, signal: string | null) => reject(this.#crash(job, code, signal));
      child.on('message', onMessage).on('error', reject).on('close', onClose);
      settled.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        child.off('message', onMessage).off('error', reject).off('close', onClose);
      });
      child.send(job, (error) => {
        // The child has exited or is about to; `close` rejects with the reason.
        if (error) child.kill('SIGKILL');
      });
    }).finally(() => settled.abort());
  }

  #crash(job: ReadJob, code: number | null, signal: string | null): Error {
    if (/heap out of memory|allocation failed/i.test(this.#output)) {
      const { memoryMb } = this.#limits;
      return limitError(
        'import_memory',
        job,
        `needs more than ${memoryMb} MiB of memory, which IMPORT_READ_MEMORY_MB limits`,
      );
    }
    return new Error(`The import reader process ended (${signal ?? `exit code ${code}`}): ${this.#output}`);
  }
}

function limitError(code: 'import_timeout' | 'import_memory', { kind }: ReadJob, problem: string): AppError {
  const input = { bundle: 'bundle', folder: 'folder', request: 'document' }[kind];
  return new AppError(
    code,
    `Reading the ${input} ${problem}. Nothing was changed: raise the setting, or split the ${input}`,
  );
}
