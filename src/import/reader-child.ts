/** One process that reads, `reader-process.ts`: started, given one document or bundle after the other, and ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AppError } from '../errors.js';
import type { ImportedEndpoint } from './imported-api.js';
import type { ReadRequest } from './read-request.js';
import type { ReadAnswer, ReadJob } from './reader-messages.js';

const PROGRAM = fileURLToPath(new URL('./reader-process.js', import.meta.url));
/** Of what the process says when it crashes. */
const KEPT_OUTPUT = 16_384;
/** A process that has grown beyond this is not kept, MiB; one that has read little has 90. */
const KEPT_MEMORY_MB = 112;

// The process of a document that needs too much memory aborts; what it held is not to be left on disk. Large documents take
// a second or two of computing, beside requests that take a millisecond: these come first.
const START_SCRIPT = 'ulimit -c 0 && exec nice -n 10 "$@"';

export interface ReaderChildLimits {
  /** Heap, MiB. */
  readonly memoryMb: number;
  /** For one document or bundle, milliseconds. */
  readonly timeoutMs: number;
}

export class ReaderChild {
  readonly #child: ChildProcess;
  #output = '';
  #isReusable = true;

  constructor(private readonly limits: ReaderChildLimits) {
    const heap = `--max-old-space-size=${limits.memoryMb}`;
    this.#child = spawn('/bin/sh', ['-c', START_SCRIPT, 'sh', process.execPath, heap, PROGRAM], {
      // Nothing of what this process is configured with is its business.
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-KEPT_OUTPUT);
    });
    // Heard of by whoever waits for it; nobody may.
    this.#child.on('error', () => undefined);
  }

  /** False once it has failed at something, or has grown large: then it has to be ended. */
  get isReusable(): boolean {
    return this.#isReusable && this.#isAlive;
  }

  /**
   * Reads. One at a time.
   * @throws AppError what is wrong with the document or bundle; Error when it is not its fault
   */
  async read(job: ReadJob): Promise<ReadRequest> {
    try {
      return await this.#answerTo(job);
    } catch (thrown) {
      // Nobody knows what it is left with.
      this.#isReusable = false;
      throw thrown;
    }
  }

  /** Ends it at once, and resolves when it is gone; whoever waits for it gets an error. */
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

  #answerTo(job: ReadJob): Promise<ReadRequest> {
    const endpoints: ImportedEndpoint[] = [];
    const heard = new AbortController();
    const child = this.#child;
    return new Promise<ReadRequest>((resolve, reject) => {
      const { timeoutMs } = this.limits;
      const timer = setTimeout(() => {
        reject(refusal(job, `takes longer than ${timeoutMs} ms (IMPORT_READ_TIMEOUT_MS) to read`));
      }, timeoutMs);
      const onMessage = (answer: ReadAnswer) => {
        if (answer.type === 'endpoints') {
          endpoints.push(...answer.endpoints);
        } else if (answer.type === 'end') {
          if (answer.memoryMb > KEPT_MEMORY_MB) this.#isReusable = false;
          resolve({ fields: answer.fields, api: { ...answer.api, endpoints } });
        } else if (answer.type === 'refused') {
          reject(new AppError(answer.code, answer.message));
        } else {
          reject(new Error(`Reading an import failed: ${answer.stack}`));
        }
      };
      // After its end there may still be output to come; `close` is when all has come.
      const onClose = (code: number | null, signal: string | null) => reject(this.#crash(job, code, signal));
      child.on('message', onMessage).on('error', reject).on('close', onClose);
      heard.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        child.off('message', onMessage).off('error', reject).off('close', onClose);
      });
      child.send(job, (error) => {
        // It is gone, or about to be: `close` says how.
        if (error) child.kill('SIGKILL');
      });
    }).finally(() => heard.abort());
  }

  #crash(job: ReadJob, code: number | null, signal: string | null): Error {
    if (/heap out of memory|allocation failed/i.test(this.#output)) {
      const { memoryMb } = this.limits;
      return refusal(job, `needs more memory than ${memoryMb} MiB (IMPORT_READ_MEMORY_MB) to read`);
    }
    return new Error(
      `The process that reads imports ended (${signal ?? `exit code ${code}`}): ${this.#output}`,
    );
  }
}

function refusal({ kind }: ReadJob, message: string): AppError {
  return kind === 'bundle'
    ? new AppError('invalid_bundle', `The bundle ${message}`)
    : new AppError('invalid_spec', `body.spec: The document ${message}`);
}
