/**
 * A log that tests can read. A line at error level that no test expected fails the suite it was written in, whether an
 * in-process application or a child process wrote it.
 */
import { type Logger, pino } from 'pino';

/** One line of the log, parsed. */
export interface LogLine {
  readonly level: number;
  readonly msg?: string;
  readonly [key: string]: unknown;
}

export interface TestLog {
  /** For code in this process. */
  readonly log: Logger;
  /** For another process: receives its output, in any pieces. */
  write(output: string): void;
  readonly lines: readonly LogLine[];
  /** Expects matching error lines from now on. */
  expectErrors(pattern: RegExp): void;
}

const ERROR = pino.levels.values['error'] ?? 50;
let unexpected: string[] = [];

export function createTestLog(): TestLog {
  const lines: LogLine[] = [];
  const expected: RegExp[] = [];
  let rest = '';
  const write = (output: string) => {
    const texts = (rest + output).split('\n');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const line = parse(text);
      if (!line) continue;
      lines.push(line);
      if (line.level >= ERROR && !expected.some((pattern) => pattern.test(text))) unexpected.push(text);
    }
  };
  return {
    log: pino({ level: 'debug' }, { write }),
    write,
    lines,
    expectErrors: (pattern) => {
      expected.push(pattern);
    },
  };
}

/** The error lines no test expected, since this was last asked. */
export function takeUnexpectedErrors(): string[] {
  const taken = unexpected;
  unexpected = [];
  return taken;
}

function parse(text: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'level' in value && typeof value.level === 'number') {
      return value as LogLine;
    }
  } catch {
    // Not a log line: processes print other things too.
  }
  return undefined;
}
