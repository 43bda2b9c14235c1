/** What a handler prints: logged line by line, and the last lines kept for error messages. */
import type { Readable } from 'node:stream';
import type { Logger } from '../log.js';

const KEPT_LINES = 20;
/** A line beyond this is cut: a handler can print without end, and without a line end. */
const MAX_LINE_CHARACTERS = 4_096;

/** The captured output of one process. */
export interface HandlerOutput {
  lastLines(): string;
  /** Resolves when the process, and all that inherited its streams, have closed them. */
  readonly ended: Promise<unknown>;
}

/** Captures both output streams of a process. */
export function captureOutput(stdout: Readable | null, stderr: Readable | null, log: Logger): HandlerOutput {
  const kept: string[] = [];
  const capture = async (stream: Readable | null, name: 'stdout' | 'stderr') => {
    if (!stream) return;
    for await (const line of lines(stream)) {
      if (kept.push(line) > KEPT_LINES) kept.shift();
      log.info({ stream: name }, line);
    }
  };
  const ended = Promise.all([capture(stdout, 'stdout'), capture(stderr, 'stderr')]).catch((error: unknown) =>
    log.warn({ err: error }, 'output of a handler could not be read'),
  );
  return { lastLines: () => kept.join('\n'), ended };
}

async function* lines(stream: Readable): AsyncGenerator<string> {
  let line = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
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
  return text.length > MAX_LINE_CHARACTERS ? `${text.slice(0, MAX_LINE_CHARACTERS)}...` : text;
}
