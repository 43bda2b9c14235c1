/** Captures the output of a handler: logs it line by line, and keeps the last lines for error messages. */
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../util/log.js';
import { LogRateLimiter } from '../util/log-rate-limiter.js';
import { storable } from '../util/text.js';
import type { HandlerEntry } from './endpoint-log.js';
import { readRecord, textOf } from './handler-records.js';

const KEPT_LINES = 20;
/** Longer lines are truncated. */
const MAX_LINE_CHARACTERS = 4_096;
/** The SDK writes no longer ones. */
const MAX_RECORD_CHARACTERS = 128 * 1024;
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

/** The streams of a process. */
export interface OutputStreams {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Of records, see `handler-records.ts`. */
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
  const limiter = new LogRateLimiter(MAX_LINES_PER_SECOND, (dropped) => {
    const message = `handler prints more than ${MAX_LINES_PER_SECOND} lines a second; the rest is not logged`;
    log.warn({ dropped }, message);
    onEntry?.({ level: 'warn', message, requestId: null, fields: { target: 'gateway', dropped } });
  });
  const throttle = new ReadThrottle(MAX_CHARACTERS_PER_SECOND);
  const said = (line: string, stream: string, entry: HandlerEntry) => {
    onLine?.(line);
    if (kept.push(line) > KEPT_LINES) kept.shift();
    if (!limiter.take()) return;
    log.info({ stream }, line);
    onEntry?.(entry);
  };
  const capture = async (stream: Readable | null, name: 'stdout' | 'stderr') => {
    if (!stream) return;
    for await (const line of lines(stream, throttle, MAX_LINE_CHARACTERS))
      said(line, name, { level: 'info', message: line, requestId: null, fields: { target: name } });
  };
  const captureRecords = async () => {
    if (!records) return;
    for await (const line of lines(records, throttle, MAX_RECORD_CHARACTERS)) {
      const entry = readRecord(line) ?? { level: 'info', message: line, requestId: null, fields: null };
      said(shorten(textOf(entry), MAX_LINE_CHARACTERS), 'records', entry);
    }
  };
  const ended = Promise.all([capture(stdout, 'stdout'), capture(stderr, 'stderr'), captureRecords()])
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

async function* lines(
  stream: Readable,
  throttle: ReadThrottle,
  maxCharacters: number,
): AsyncGenerator<string> {
  let line = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    await throttle.take(chunk.length);
    const parts = chunk.split('\n');
    const last = parts.pop() ?? '';
    for (const part of parts) {
      yield shorten(line + part, maxCharacters);
      line = '';
    }
    if (line.length <= maxCharacters) line += last;
  }
  if (line !== '') yield shorten(line, maxCharacters);
}

function shorten(line: string, maxCharacters: number): string {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  return storable(text.length > maxCharacters ? `${text.slice(0, maxCharacters)}...` : text);
}
