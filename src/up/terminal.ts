/** The output of `npm run up`: its steps while it starts, then the log of the processes. */
import { toError } from '../errors.js';
import { WORKER_LOG } from '../model/preparation.js';
import { LogFile } from './log-file.js';
import { FATAL, type LogLine, parseLogLine, printable } from './log-line.js';

const WARN = 40;
const ERROR = 50;
const CLEAR_LINE = '\r\x1b[2K';
/** Longer messages are complete in the log file. */
const MAX_MESSAGE_CHARACTERS = 300;
const PROGRESS_EVERY_MS = 5_000;

/**
 * Writes to stdout. On a terminal, warnings and errors are shown as sentences, and the whole log goes to a file.
 * Otherwise the log is passed on unchanged, as JSON lines.
 */
export class Terminal {
  readonly #isTerminal = process.stdout.isTTY === true;
  #logFile: LogFile | undefined;
  #isStarting = true;
  /** Whether the last line is a progress line. */
  #hasProgress = false;
  #progressAt = Number.NEGATIVE_INFINITY;

  /** Begins the log file in DATA_DIR/log, if stdout is a terminal. */
  openLog(dataDir: string): void {
    if (this.#isTerminal) this.#logFile = new LogFile(dataDir);
  }

  /** The path of the log file, if there is one. */
  get logFile(): string | undefined {
    return this.#logFile?.path;
  }

  /** A line of the output of a process. While starting, only warnings and errors are shown. */
  readonly log = (line: string): void => {
    const entry = parseLogLine(line);
    if (!this.#isTerminal) {
      if (entry === undefined || entry.level >= WARN || !this.#isStarting) this.#write(line);
      return;
    }
    this.#keep(line);
    if (entry === undefined) this.#write(printable(line));
    // A fatal error is shown together with the end of its process.
    else if (entry.level >= WARN && entry.level < FATAL) this.#write(sentence(entry, this.logFile));
  };

  /** Ends the quiet phase: without a terminal, the whole log is shown from now on. */
  started(): void {
    this.#isStarting = false;
  }

  /** Runs a step of the start, and shows its duration. */
  async step<T>(title: string, work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    this.#write(`\u25b8 ${title}`);
    const result = await work();
    const seconds = (performance.now() - started) / 1000;
    this.#write(`  ${title}: done in ${seconds.toFixed(1)} s`);
    return result;
  }

  /** Shows the progress of a step: on a terminal in one line that is rewritten, otherwise a line every few seconds. */
  progress(text: string): void {
    if (this.#isTerminal) {
      process.stdout.write(
        `${CLEAR_LINE}${`  ${printable(withLogFile(text, this.logFile))}`.slice(0, process.stdout.columns - 1)}`,
      );
      this.#hasProgress = true;
    } else if (performance.now() - this.#progressAt >= PROGRESS_EVERY_MS) {
      this.#progressAt = performance.now();
      this.#write(`  ${text}`);
    }
  }

  say(text: string): void {
    this.#write(text);
  }

  #keep(line: string): void {
    try {
      this.#logFile?.write(line);
    } catch (thrown) {
      const path = this.logFile;
      this.#logFile = undefined;
      this.#write(`The log is not kept any more: ${path} cannot be written (${toError(thrown).message}).`);
    }
  }

  #write(text: string): void {
    process.stdout.write(`${this.#hasProgress ? CLEAR_LINE : ''}${text}\n`);
    this.#hasProgress = false;
  }
}

/** @param logFile the path of the log file, if there is one */
export function sentence({ level, time, name, message }: LogLine, logFile?: string): string {
  const clock = new Date(time).toTimeString().slice(0, 8);
  const firstLine = message.split('\n', 1)[0]?.slice(0, MAX_MESSAGE_CHARACTERS);
  return withLogFile(`${clock} ${level >= ERROR ? 'ERROR' : 'warning'} (${name}) ${firstLine}`, logFile);
}

/** The log of the worker is in the log file too. */
function withLogFile(text: string, logFile: string | undefined): string {
  return logFile === undefined ? text : text.replace(WORKER_LOG, logFile);
}
