/** Errors of PostgreSQL, as handlers and operators get them. */
import { toError } from '../../errors.js';
import { unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

/** What the server says of an error; all of it is text. */
interface ServerError {
  readonly message: string;
  readonly code: string;
  readonly severity: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
}

/** The statement cannot be run as prepared: its result has changed, or the server has forgotten it. */
export function isStalePlan(thrown: unknown): boolean {
  const error = serverError(thrown);
  if (error?.code === '26000') return true;
  return error?.code === '0A000' && /cached plan/.test(error.message);
}

/** The server takes nobody without (or with) encryption, or not from here. */
export function isRefusedByRules(thrown: unknown): boolean {
  return serverError(thrown)?.code === '28000';
}

/** An error of a call. */
export function callError(thrown: unknown, where: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error = serverError(thrown);
  if (!error) return unavailable(thrown, where, connectionLost(thrown, where));
  if (isFatal(error)) return unavailable(thrown, where, `${where} ended the connection: ${describe(error)}`);
  return new ServiceError('backend', describe(error), { cause: thrown });
}

/** An error of opening a connection. */
export function connectError(
  thrown: unknown,
  where: string,
  names: { database: string; sslMode: string },
): ServiceError {
  const error = serverError(thrown);
  return unavailable(
    thrown,
    where,
    error ? refusal(error, where, names.database) : transport(thrown, where, names.sslMode),
  );
}

function refusal(error: ServerError, where: string, database: string): string {
  switch (error.code) {
    case '28P01':
      return `the server at ${where} did not accept the username or the password`;
    case '28000':
      return `the server at ${where} did not accept the username, or does not let it in from here: ${error.message}`;
    case '3D000':
      return `unknown database: the server at ${where} has none with the name "${database}"`;
    default:
      return `the server at ${where} refused the connection: ${describe(error)}`;
  }
}

function transport(thrown: unknown, where: string, sslMode: string): string | undefined {
  const { message } = toError(thrown);
  if (message.includes('does not support SSL')) {
    return `the server at ${where} does not offer TLS, but ssl_mode is "${sslMode}"`;
  }
  if (message.includes('password must be a')) {
    return `the server at ${where} did not accept the username or the password: it asks for a password, and none is set`;
  }
  return connectionLost(thrown, where);
}

function connectionLost(thrown: unknown, where: string): string | undefined {
  const lost = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;
  return lost.test(toError(thrown).message) ? `${where} closed the connection` : undefined;
}

function isFatal({ severity, code }: ServerError): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || code.startsWith('57P') || code.startsWith('08');
}

/** `duplicate key ... (23505): Key (id)=(1) already exists. Hint: ...` */
function describe({ message, code, detail, hint }: ServerError): string {
  return `${message} (${code})${detail ? `: ${detail}` : ''}${hint ? ` Hint: ${hint}` : ''}`;
}

function serverError(thrown: unknown): ServerError | undefined {
  const isServers =
    thrown instanceof Error && 'severity' in thrown && 'code' in thrown && typeof thrown.code === 'string';
  return isServers ? (thrown as unknown as ServerError) : undefined;
}
