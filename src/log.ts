/** The log: JSON lines on stdout, or readable lines when stdout is a terminal. */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

/** So much of a log that cannot be written waits for better times. */
const KEPT_BYTES = 1024 * 1024;

/** Members whose values do not reach the log. */
const SECRETS = ['password', 'secret_key', 'access_key', 'config', 'authorization', 'cookie'];

/**
 * Where they are looked for: in what is logged, and in objects up to two levels within. The log has no wildcard for all
 * levels, so this is a safety net; whoever logs picks the members to log.
 */
const SECRET_PATHS = SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/**
 * Makes the logger of a process.
 * @param name the process, e.g. `web`; on every line
 * @param level lowest level that is written
 */
export function createLogger(name: string, level: string): Logger {
  const options = { name, level, redact: SECRET_PATHS };
  // Written synchronously: a line must not be lost because the process ends right after it.
  return process.stdout.isTTY
    ? pino(
        options,
        pretty({ sync: true, singleLine: true, ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l' }),
      )
    : pino(options, standardOutput());
}

/**
 * A log that cannot be written, because its disk is full say, is no reason to end. What could not be written is kept for
 * later, up to a bound; beyond that it is lost.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true, maxLength: KEPT_BYTES });
  output.on('error', () => undefined);
  return output;
}
