/** Why a backend cannot be reached, in words a person can act on. */
import { toError } from '../errors.js';
import { ServiceError } from './service-error.js';

/** By the code of Node's own errors; `where` is `host:port`. */
const NETWORK: Readonly<Record<string, (where: string) => string>> = {
  ECONNREFUSED: (where) => `the connection to ${where} was refused: is the server running there?`,
  ENOTFOUND: (where) => `unknown host: the name in ${where} does not exist`,
  EAI_AGAIN: (where) => `unknown host: the name in ${where} cannot be looked up at the moment`,
  ETIMEDOUT: (where) => `${where} did not answer in time`,
  EHOSTUNREACH: (where) => `there is no way to ${where}`,
  ENETUNREACH: (where) => `there is no way to ${where}`,
  ECONNRESET: (where) => `${where} closed the connection`,
  EPIPE: (where) => `${where} closed the connection`,
  ENOENT: (where) => `${where} does not exist`,
};

const CERTIFICATE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its chain ends in a self-signed certificate that is not trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'it was signed by nobody who is trusted here',
  UNABLE_TO_GET_ISSUER_CERT: 'its issuer is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its issuer is not trusted here',
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it was issued for another host name',
};

/** The code of an error, its own or that of what caused it. */
export function errorCode(thrown: unknown): string | undefined {
  for (let error = thrown; typeof error === 'object' && error !== null; ) {
    if ('code' in error && typeof error.code === 'string') return error.code;
    // Node tries all addresses of a name, and gathers what each said.
    if (error instanceof AggregateError && error.errors.length > 0) error = error.errors[0];
    else error = 'cause' in error ? error.cause : undefined;
  }
  return undefined;
}

/** Whether it was the network that failed, and not the backend that refused. */
export function isNetworkFailure(thrown: unknown): boolean {
  return Object.hasOwn(NETWORK, errorCode(thrown) ?? '');
}

/** The reason when it is one of the network or the certificate; undefined for what only the driver can explain. */
export function networkReason(thrown: unknown, where: string): string | undefined {
  const code = errorCode(thrown) ?? '';
  const certificate = CERTIFICATE[code];
  if (certificate) return `the certificate of ${where} was not accepted: ${certificate} (${code})`;
  return NETWORK[code]?.(where);
}

/** The error of a connection that could not be made, or broke: the driver's words, the network's, or else its own message. */
export function unavailable(thrown: unknown, where: string, driversReason?: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const reason = driversReason ?? networkReason(thrown, where) ?? `${where}: ${toError(thrown).message}`;
  return new ServiceError('unavailable', reason, { cause: thrown });
}
