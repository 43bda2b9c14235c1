/** What `npm run up` shows: its steps while it starts, then the log of all processes. */
import { prettyFactory } from 'pino-pretty';

const WARN = 40;

/** Writes to stdout; logs become readable lines on a terminal, and stay JSON elsewhere. */
export class Terminal {
  readonly #isTerminal = process.stdout.isTTY === true;
  readonly #pretty = prettyFactory({
    ignore: 'pid,hostname',
    translateTime: 'HH:MM:ss.l',
    colorize: this.#isTerminal,
    singleLine: true,
  });
  #showAll = false;

  /** A line of the log of a process. While starting, only what is worth a warning is shown. */
  readonly log = (line: string): void => {
    const entry = parse(line);
    if (entry === undefined) this.#write(line);
    else if (this.#showAll || entry.level >= WARN) {
      this.#write(this.#isTerminal ? this.#pretty(entry).trimEnd() : line);
    }
  };

  /** From now on, all of the log is shown. */
  showLogs(): void {
    this.#showAll = true;
  }

  /** Runs a step of the start, and says how long it took. */
  async step<T>(title: string, work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    this.#write(`\u25b8 ${title}`);
    const result = await work();
    const seconds = (performance.now() - started) / 1000;
    this.#write(`  ${title}: done in ${seconds.toFixed(1)} s`);
    return result;
  }

  say(text: string): void {
    this.#write(text);
  }

  #write(text: string): void {
    process.stdout.write(`${text}\n`);
  }
}

function parse(line: string): { level: number } | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry === 'object' && entry !== null && 'level' in entry && typeof entry.level === 'number') {
      return { ...entry, level: entry.level };
    }
  } catch {
    // Not a log line after all: shown as it is.
  }
  return undefined;
}
