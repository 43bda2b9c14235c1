/** The log: JSON lines on stdout, or readable lines when stdout is a terminal. */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

type Write = (details: object, message: string) => void;

/** What most code needs of a log. */
export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

/** Size of the buffer while the log cannot be written, bytes. */
const KEPT_BYTES = 1024 * 1024;

/** Members whose values are never logged, besides secret settings: headers, configs of services, access keys. */
const HIDDEN_MEMBERS = ['access_key', 'authorization', 'config', 'cookie'];

/**
 * Makes the logger of a process.
 * @param name the process, e.g. `web`; on every line
 * @param level lowest level that is written
 * @param secrets names of additional members whose values are never logged
 */
export function createLogger(name: string, level: string, secrets: Iterable<string>): Logger {
  // Up to two levels deep, because pino has no wildcard for all levels. This is a safety net: callers select the
  // members to log.
  const redact = [...HIDDEN_MEMBERS, ...secrets].flatMap((member) => [
    member,
    `*.${member}`,
    `*.*.${member}`,
  ]);
  const options = { name, level, redact };
  // Synchronous, so that no line is lost when the process exits.
  return process.stdout.isTTY
    ? pino(
        options,
        pretty({ sync: true, singleLine: true, ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l' }),
      )
    : pino(options, standardOutput());
}

/**
 * A log that cannot be written, for example because the disk is full, must not end the process. Lines are buffered up
 * to a limit and dropped beyond it.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true, maxLength: KEPT_BYTES });
  output.on('error', () => undefined);
  return output;
}
