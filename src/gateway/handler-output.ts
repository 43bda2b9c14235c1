/** Captures the output of a handler: logs it line by line, and keeps the last lines for error messages. */
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../util/log.js';
import { LogRateLimiter } from '../util/log-rate-limiter.js';
import { storable } from '../util/text.js';

const KEPT_LINES = 20;
/** Longer lines are truncated. */
const MAX_LINE_CHARACTERS = 4_096;
/** Prevents a handler from filling the disk with its log. */
const MAX_LINES_PER_SECOND = 500;

/** Reading is limited too: a handler that writes more blocks, instead of keeping the gateway busy. */
const MAX_CHARACTERS_PER_SECOND = 1024 * 1024;

/** The captured output of one process. */
export interface HandlerOutput {
  lastLines(): string;
  /** Resolves when the process and all its child processes have closed the streams. */
  readonly ended: Promise<unknown>;
}

/** Captures both output streams of a process. @param onLine called with each line */
export function captureOutput(
  stdout: Readable | null,
  stderr: Readable | null,
  log: Logger,
  onLine?: (line: string) => void,
): HandlerOutput {
  const kept: string[] = [];
  const limiter = new LogRateLimiter(MAX_LINES_PER_SECOND, (dropped) =>
    log.warn(
      { dropped },
      `handler prints more than ${MAX_LINES_PER_SECOND} lines a second; the rest is not logged`,
    ),
  );
  const throttle = new ReadThrottle(MAX_CHARACTERS_PER_SECOND);
  const capture = async (stream: Readable | null, name: 'stdout' | 'stderr') => {
    if (!stream) return;
    for await (const line of lines(stream, throttle)) {
      onLine?.(line);
      if (kept.push(line) > KEPT_LINES) kept.shift();
      if (limiter.take()) log.info({ stream: name }, line);
    }
  };
  const ended = Promise.all([capture(stdout, 'stdout'), capture(stderr, 'stderr')])
    .catch((error: unknown) => log.warn({ err: error }, 'output of a handler could not be read'))
    .finally(() => limiter.reportDropped());
  return { lastLines: () => kept.join('\n'), ended };
}

/** Delays a reader that exceeds a number of characters per second. */
class ReadThrottle {
  readonly #perSecond: number;
  #since = performance.now();
  #taken = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  async take(characters: number): Promise<void> {
    this.#taken += characters;
    if (this.#taken <= this.#perSecond) return;
    const passed = performance.now() - this.#since;
    if (passed < 1_000) await delay(1_000 - passed);
    this.#since = performance.now();
    this.#taken = 0;
  }
}

async function* lines(stream: Readable, throttle: ReadThrottle): AsyncGenerator<string> {
  let line = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    await throttle.take(chunk.length);
    const parts = chunk.split('\n');
    const last = parts.pop() ?? '';
    for (const part of parts) {
      yield shorten(line + part);
      line = '';
    }
    if (line.length <= MAX_LINE_CHARACTERS) line += last;
  }
  if (line !== '') yield shorten(line);
}

function shorten(line: string): string {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  return storable(text.length > MAX_LINE_CHARACTERS ? `${text.slice(0, MAX_LINE_CHARACTERS)}...` : text);
}
