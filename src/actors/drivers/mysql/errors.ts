/** Errors of MySQL and MariaDB as reported to handlers and operators. */
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { errorCode, REASONS, unavailable } from '../../failures.js';
import type { ServiceError } from '../../service-error.js';
import type { ServerRefusal } from './pooled-connection.js';

export type MysqlConfig = ServiceConfig<'mysql'>;

/** Messages of the library about closed connections. */
export const CLOSED = /^Connection lost|closed state|^Pool is closed/;

interface ServerError {
  readonly message: string;
  readonly errno: number;
  readonly sqlState: string;
}

/** Error numbers: the server is shutting down or has closed the connection. */
const LOST = new Set([1053, 1077, 1079, 1080, 1152, 1159, 1161, 1184, 1927, 4031]);
/** The statement exceeds max_allowed_packet, which also closes the connection. */
const TOO_LARGE = 1153;
const ACCESS_DENIED = new Set([1045, 1698, 1251]);
const DATABASE_DENIED = 1044;
const UNKNOWN_DATABASE = 1049;
const NOT_PREPARABLE = 1295;

/** The statement cannot be prepared, but may be sent as text. */
export function isNotPreparable(thrown: unknown): boolean {
  return serverError(thrown)?.errno === NOT_PREPARABLE;
}

/** Whether the server has returned the error and is ready for the next statement. */
export function isServerError(thrown: unknown): boolean {
  const errno = serverError(thrown)?.errno;
  return errno !== undefined && errno !== TOO_LARGE && !LOST.has(errno);
}

/** The error after which the server closes the connection: the reason to report. */
export function isTooLarge(thrown: unknown): boolean {
  return serverError(thrown)?.errno === TOO_LARGE;
}

/** The error that the server has returned. */
export function refusalOf(thrown: unknown): ServerRefusal | undefined {
  const error = serverError(thrown);
  return error && { text: describe(error), endsConnection: LOST.has(error.errno) };
}

/** An error of opening a connection. */
export function connectError(thrown: unknown, where: string, { database }: MysqlConfig): ServiceError {
  const error = serverError(thrown);
  return unavailable(
    thrown,
    where,
    error ? refusalReason(error, where, database) : transportReason(thrown, where),
  );
}

function refusalReason(error: ServerError, where: string, database: string): string {
  const { errno } = error;
  if (ACCESS_DENIED.has(errno)) return REASONS.login(where);
  if (errno === UNKNOWN_DATABASE) return REASONS.database(where, database);
  if (errno === DATABASE_DENIED) {
    return `the account may not use the database "${database}" of the server at ${where}`;
  }
  return REASONS.refused(where, describe(error));
}

function transportReason(thrown: unknown, where: string): string | undefined {
  const { message } = toError(thrown);
  const code = errorCode(thrown);
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') return REASONS.noTls(where, 'use_ssl is set');
  // The library replaces the code of the cause with its own.
  if (code === 'HANDSHAKE_SSL_ERROR') return certificateRefused(where, message);
  return CLOSED.test(message) ? REASONS.closed(where) : undefined;
}

/** Why TLS failed: the server has none, or its certificate was refused. */
export function certificateRefused(where: string, reason: string): string {
  const text = reason.includes('altnames') ? 'it was issued for another host name' : reason;
  return REASONS.certificate(where, text);
}

/** `Duplicate entry '1' for key 'PRIMARY' (1062, 23000)` */
function describe({ message, errno, sqlState }: ServerError): string {
  return `${message} (${errno}${sqlState ? `, ${sqlState}` : ''})`;
}

function serverError(thrown: unknown): ServerError | undefined {
  const isServers =
    thrown instanceof Error && 'errno' in thrown && 'sqlState' in thrown && 'sqlMessage' in thrown;
  return isServers ? (thrown as unknown as ServerError) : undefined;
}
