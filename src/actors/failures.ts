/** Reasons why a backend cannot be reached or refuses a call, in the same words for all drivers. */
import { toError } from '../errors.js';
import { ServiceError } from './service-error.js';

/** `where` is `host:port`. */
export const REASONS = {
  login: (where: string) => `the server at ${where} did not accept the username or the password`,
  database: (where: string, name: string) =>
    `unknown database: the server at ${where} has none with the name "${name}"`,
  refused: (where: string, message: string) => `the server at ${where} refused: ${message}`,
  /** @param setting the setting of the config, e.g. `use_ssl is set` */
  noTls: (where: string, setting: string) => `the server at ${where} does not offer TLS, but ${setting}`,
  certificate: (where: string, problem: string) => `the certificate of ${where} was not accepted: ${problem}`,
  closed: (where: string) => `${where} closed the connection`,
  closedHere: (where: string) => `the connection to ${where} is closed`,
  ended: (where: string, message: string) => `${where} ended the connection: ${message}`,
  silent: (where: string) => `${where} did not answer in time`,
  garbled: (where: string) => `${where} does not keep to the protocol`,
} as const;

/** Reasons of failed connections, by the error code of Node. */
const NETWORK: Readonly<Record<string, (where: string) => string>> = {
  ECONNREFUSED: (where) => `the connection to ${where} was refused: is the server running there?`,
  ENOTFOUND: (where) => `unknown host: the name in ${where} does not exist`,
  EAI_AGAIN: (where) => `unknown host: the name in ${where} cannot be looked up at the moment`,
  ETIMEDOUT: REASONS.silent,
  EHOSTUNREACH: (where) => `there is no route to ${where}`,
  ENETUNREACH: (where) => `there is no route to ${where}`,
  ECONNRESET: REASONS.closed,
  EPIPE: REASONS.closed,
  ENOENT: (where) => `${where} does not exist`,
};

const CERTIFICATE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its chain ends in a self-signed certificate that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'it was signed by an issuer that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT: 'its issuer is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its issuer is not trusted here',
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it was issued for another host name',
};

/** The code of an error or of its cause. */
export function errorCode(thrown: unknown): string | undefined {
  for (let error = thrown; typeof error === 'object' && error !== null; ) {
    if ('code' in error && typeof error.code === 'string') return error.code;
    // Node tries all addresses of a name and collects the errors.
    if (error instanceof AggregateError && error.errors.length > 0) error = error.errors[0];
    else error = 'cause' in error ? error.cause : undefined;
  }
  return undefined;
}

/** Whether the network failed, rather than the backend refused. */
export function isNetworkFailure(thrown: unknown): boolean {
  return Object.hasOwn(NETWORK, errorCode(thrown) ?? '');
}

/** The reason of a network or certificate error; undefined for errors that only the driver can explain. */
export function networkReason(thrown: unknown, where: string): string | undefined {
  const code = errorCode(thrown) ?? '';
  const certificate = CERTIFICATE[code];
  if (certificate) return REASONS.certificate(where, `${certificate} (${code})`);
  return NETWORK[code]?.(where);
}

/**
 * The error of a connection that could not be opened or was lost.
 * @param driversReason takes precedence over the network reason and over the message of the error
 */
export function unavailable(thrown: unknown, where: string, driversReason?: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const reason =
    driversReason ??
    networkReason(thrown, where) ??
    (isMistake(thrown) ? REASONS.garbled(where) : `${where}: ${toError(thrown).message}`);
  return new ServiceError('unavailable', reason, { cause: thrown });
}

/** Whether a library did not understand what it read: its message is about its own variables. */
function isMistake(thrown: unknown): boolean {
  return thrown instanceof TypeError || thrown instanceof RangeError;
}

/** The error of a failed call, for its handler. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  return new ServiceError('backend', toError(thrown).message, { cause: thrown });
}
