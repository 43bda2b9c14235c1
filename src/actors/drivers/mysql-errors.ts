/** Errors of MySQL and MariaDB, as handlers and operators get them. */
import { toError } from '../../errors.js';
import { errorCode, unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

interface ServerError {
  readonly message: string;
  readonly errno: number;
  readonly sqlState: string;
}

/** By number: the server is going down, or has ended the connection. */
const LOST = new Set([1053, 1077, 1079, 1080, 1152, 1159, 1161, 1184, 1927, 4031]);
/** The statement is larger than the server takes, which ends the connection, too. */
const TOO_LARGE = 1153;
const ACCESS_DENIED = new Set([1045, 1698, 1251]);
const DATABASE_DENIED = 1044;
const UNKNOWN_DATABASE = 1049;
const NOT_PREPARABLE = 1295;

/** A statement that cannot be prepared, but may be sent as text. */
export function isNotPreparable(thrown: unknown): boolean {
  return serverError(thrown)?.errno === NOT_PREPARABLE;
}

/** The server has answered it, and waits for the next statement. */
export function isServerError(thrown: unknown): boolean {
  const errno = serverError(thrown)?.errno;
  return errno !== undefined && errno !== TOO_LARGE && !LOST.has(errno);
}

/** The connection is closed by the server after this error, which says all there is to say. */
export function isTooLarge(thrown: unknown): boolean {
  return serverError(thrown)?.errno === TOO_LARGE;
}

/** An error of a call. */
export function callError(thrown: unknown, where: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error = serverError(thrown);
  if (!error) return unavailable(thrown, where, connectionLost(thrown, where));
  if (LOST.has(error.errno))
    return unavailable(thrown, where, `${where} ended the connection: ${describe(error)}`);
  return new ServiceError('backend', describe(error), { cause: thrown });
}

/** An error of opening a connection. */
export function connectError(thrown: unknown, where: string, database: string): ServiceError {
  const error = serverError(thrown);
  if (!error) return unavailable(thrown, where, transport(thrown, where));
  if (ACCESS_DENIED.has(error.errno)) {
    return unavailable(thrown, where, `the server at ${where} did not accept the username or the password`);
  }
  if (error.errno === UNKNOWN_DATABASE) {
    return unavailable(
      thrown,
      where,
      `unknown database: the server at ${where} has none with the name "${database}"`,
    );
  }
  if (error.errno === DATABASE_DENIED) {
    return unavailable(
      thrown,
      where,
      `the account may not use the database "${database}" of the server at ${where}`,
    );
  }
  return unavailable(thrown, where, `the server at ${where} refused the connection: ${describe(error)}`);
}

function transport(thrown: unknown, where: string): string | undefined {
  const { message } = toError(thrown);
  const code = errorCode(thrown);
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT')
    return `the server at ${where} does not offer TLS, but use_ssl is set`;
  // The library puts its own code in place of that of the reason.
  if (code === 'HANDSHAKE_SSL_ERROR') return certificateRefused(where, message);
  return connectionLost(thrown, where);
}

/** Why TLS was not possible: but for a server without it, that is the certificate. */
export function certificateRefused(where: string, reason: string): string {
  const text = reason.includes('altnames') ? 'it was issued for another host name' : reason;
  return `the certificate of ${where} was not accepted: ${text}`;
}

function connectionLost(thrown: unknown, where: string): string | undefined {
  const lost = /^Connection lost|closed state|^Pool is closed/;
  return lost.test(toError(thrown).message) ? `${where} closed the connection` : undefined;
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
