/** Captures the output of a handler: logs it line by line, and keeps the last lines for error messages. */
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../util/log.js';
import { LogRateLimiter } from '../../util/log-rate-limiter.js';
import { storable } from '../../util/text.js';
import { isForTraceOnly, readRecord, textOf } from '../handler-records.js';
import type { HandlerEntry } from '../log/endpoint-log.js';

const KEPT_LINES = 20;
/** Longer lines are truncated. */
const MAX_LINE_CHARACTERS = 4_096;
/** The SDK writes no longer ones. */
const MAX_RECORD_CHARACTERS = 128 * 1024;
/** Prevents a handler from filling the disk with its log. */
const MAX_LINES_PER_SECOND = 500;
/** Errors that it records are counted by themselves: nothing that it prints takes their place. */
const MAX_ERRORS_PER_SECOND = 2_000;

/** Reading is limited too: a handler that writes more blocks, instead of keeping the gateway busy. */
const MAX_CHARACTERS_PER_SECOND = 1024 * 1024;

/** The captured output of one process. */
export interface HandlerOutput {
  lastLines(): string;
  /** Resolves when the process and all its child processes have closed the streams. */
  readonly ended: Promise<unknown>;
}

/** The streams of a process. */
export interface OutputStreams {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** The stream of records, see `handler-records.ts`. */
  readonly records: Readable | null;
}

/** Who wants to know what it says. */
export interface OutputListeners {
  /** Called with each line, also of those that are too many for the log. */
  readonly onLine?: ((line: string) => void) | undefined;
  readonly onEntry?: ((entry: HandlerEntry) => void) | undefined;
}

/** Captures what a process says. */
export function captureOutput(
  { stdout, stderr, records }: OutputStreams,
  log: Logger,
  { onLine, onEntry }: OutputListeners = {},
): HandlerOutput {
  const kept: string[] = [];
  const limiterOf = (perSecond: number, level: 'warn' | 'error', what: string) =>
    new LogRateLimiter(perSecond, (dropped) => {
      const message = `handler ${what} a second; the rest is not logged`;
      log.warn({ dropped }, message);
      onEntry?.({ level, message, requestId: null, fields: { target: 'gateway', dropped } });
    });
  const limiter = limiterOf(MAX_LINES_PER_SECOND, 'warn', `prints more than ${MAX_LINES_PER_SECOND} lines`);
  const errors = limiterOf(MAX_ERRORS_PER_SECOND, 'error', `has more than ${MAX_ERRORS_PER_SECOND} errors`);
  const said = (line: string, stream: string, entry: HandlerEntry) => {
    onLine?.(line);
    if (kept.push(line) > KEPT_LINES) kept.shift();
    if (!(entry.level === 'error' ? errors : limiter).take()) return;
    log.info({ stream }, line);
    onEntry?.(entry);
  };
  const printing = new ReadThrottle(MAX_CHARACTERS_PER_SECOND);
  const capture = async (stream: Readable | null, name: 'stdout' | 'stderr') => {
    if (!stream) return;
    for await (const { text, cutBytes } of lines(stream, printing, MAX_LINE_CHARACTERS)) {
      const fields = { target: name, ...(cutBytes > 0 && { cut_bytes: cutBytes }) };
      said(text, name, { level: 'info', message: text, requestId: null, fields });
    }
  };
  const captureRecords = async () => {
    if (!records) return;
    // What is printed does not hold up records.
    const throttle = new ReadThrottle(MAX_CHARACTERS_PER_SECOND);
    for await (const { text } of lines(records, throttle, MAX_RECORD_CHARACTERS)) {
      const entry = readRecord(text) ?? { level: 'info', message: text, requestId: null, fields: null };
      if (isForTraceOnly(entry)) onEntry?.(entry);
      else said(shorten(textOf(entry), MAX_LINE_CHARACTERS).text, 'records', entry);
    }
  };
  const ended = Promise.all([capture(stdout, 'stdout'), capture(stderr, 'stderr'), captureRecords()])
    .catch((error: unknown) => log.warn({ err: error }, 'output of a handler could not be read'))
    .finally(() => {
      limiter.reportDropped();
      errors.reportDropped();
    });
  return { lastLines: () => kept.join('\n'), ended };
}

/** Delays a reader that exceeds a number of characters per second. */
class ReadThrottle {
  readonly #perSecond: number;
  #since = performance.now();
  #read = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  async take(characters: number): Promise<void> {
    this.#read += characters;
    if (this.#read <= this.#perSecond) return;
    const passed = performance.now() - this.#since;
    if (passed < 1_000) await delay(1_000 - passed);
    this.#since = performance.now();
    this.#read = 0;
  }
}

interface Line {
  readonly text: string;
  /** What is missing at its end. */
  readonly cutBytes: number;
}

async function* lines(stream: Readable, throttle: ReadThrottle, maxCharacters: number): AsyncGenerator<Line> {
  let line = '';
  let cutBytes = 0;
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    await throttle.take(chunk.length);
    const parts = chunk.split('\n');
    const last = parts.pop() ?? '';
    for (const part of parts) {
      yield shorten(line + part, maxCharacters, cutBytes);
      line = '';
      cutBytes = 0;
    }
    if (line.length <= maxCharacters) line += last;
    else cutBytes += Buffer.byteLength(last);
  }
  if (line !== '') yield shorten(line, maxCharacters, cutBytes);
}

/** @param cutBytes what is missing at its end already */
function shorten(line: string, maxCharacters: number, cutBytes = 0): Line {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (text.length <= maxCharacters) return { text: storable(text), cutBytes };
  const rest = text.slice(maxCharacters);
  return {
    text: storable(`${text.slice(0, maxCharacters)}...`),
    cutBytes: cutBytes + Buffer.byteLength(rest),
  };
}
