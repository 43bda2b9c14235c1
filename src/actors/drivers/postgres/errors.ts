/** Errors of PostgreSQL as reported to handlers and operators. */
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { REASONS, unavailable } from '../../failures.js';
import type { ServiceError } from '../../service-error.js';
import type { ServerRefusal } from '../../sql/pooled-connection.js';

export type PostgresConfig = ServiceConfig<'postgres'>;

/** Messages of the library about closed connections. */
export const CLOSED = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;
/** Message of the library for a server without TLS. */
const NO_TLS = 'The server does not support SSL connections';

/** The text fields of an error response. */
interface ServerError {
  readonly message: string;
  readonly code: string;
  readonly severity: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
}

/** Whether a prepared statement is stale: its result type has changed, or it does not exist any more. */
export function isStalePlan(thrown: unknown): boolean {
  const error = serverError(thrown);
  if (error?.code === '26000') return true;
  return error?.code === '0A000' && /cached plan/.test(error.message);
}

/** Whether the server has no TLS, or its rules refuse this client with (or without) encryption. */
export function mayConnectOtherwise(thrown: unknown): boolean {
  return toError(thrown).message === NO_TLS || serverError(thrown)?.code === '28000';
}

/** The error that the server has returned. */
export function refusalOf(thrown: unknown): ServerRefusal | undefined {
  const error = serverError(thrown);
  if (!error) return undefined;
  const { severity, code } = error;
  const endsConnection =
    ['FATAL', 'PANIC'].includes(severity) || code.startsWith('57P') || code.startsWith('08');
  return { text: describe(error), endsConnection };
}

/** An error of opening a connection. */
export function connectError(
  thrown: unknown,
  where: string,
  { database, ssl_mode }: PostgresConfig,
): ServiceError {
  return unavailable(thrown, where, reasonOf(thrown));

  function reasonOf(thrown: unknown): string | undefined {
    const error = serverError(thrown);
    const { message } = toError(thrown);
    switch (error?.code) {
      case undefined:
        if (message === NO_TLS) return REASONS.noTls(where, `ssl_mode is "${ssl_mode}"`);
        if (message.includes('password must be a')) {
          return `${REASONS.login(where)}: it asks for a password, and none is set`;
        }
        return CLOSED.test(message) ? REASONS.closed(where) : undefined;
      case '28P01':
        return REASONS.login(where);
      case '28000':
        return `the server at ${where} did not accept the username, or does not let it in from here: ${message}`;
      case '3D000':
        return REASONS.database(where, database);
      default:
        return error && REASONS.refused(where, describe(error));
    }
  }
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
