/** Parses log lines of a process: JSON, as `src/util/log.ts` writes it. */

/** Level of errors that end a process. */
export const FATAL = 60;

/** The parts of a log line that people need. */
export interface LogLine {
  readonly level: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The name of the process. */
  readonly name: string;
  /** The message and, of an error, its message without the stack. */
  readonly message: string;
}

/** Parses a line. Undefined for other output of the process. */
export function parseLogLine(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined;
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof entry !== 'object' || entry === null || !('level' in entry)) return undefined;
  const { level, time, name, msg, err } = entry as Record<string, unknown>;
  if (typeof level !== 'number' || typeof time !== 'number') return undefined;
  return {
    level,
    time,
    name: printable(String(name)),
    message: printable(withReason(String(msg ?? ''), err)),
  };
}

/**
 * Text in which untrusted code cannot hide anything from a terminal, or control it: without control characters, except
 * line feeds and tabs, and without those that change the direction of writing.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, (character) =>
    '\n\t'.includes(character) ? character : '',
  );
}

function withReason(message: string, error: unknown): string {
  const isError = typeof error === 'object' && error !== null && 'message' in error;
  return isError ? `${message}: ${String(error.message)}` : message;
}
