/** What the errors of nodemailer mean. */
import { toError } from '../../errors.js';
import { networkReason, unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

/** What nodemailer adds to errors. */
interface MailError extends Error {
  readonly code?: string;
  /** The code before nodemailer put its own there: of the network, or of the certificate. */
  readonly originalCode?: string;
  /** What the server said, and the number it begins with. */
  readonly response?: string;
  readonly responseCode?: number;
}

/** The server ends the connection. */
const CLOSING = 421;

/** The error of a connection that could not be made, or broke. */
export function connectError(thrown: unknown, where: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error: MailError = toError(thrown);
  return unavailable(error, where, reasonOf(error, where));
}

function reasonOf(error: MailError, where: string): string | undefined {
  const cause = networkReason({ code: error.originalCode }, where);
  if (cause !== undefined) return cause;
  switch (error.code) {
    case 'EAUTH':
      return `the server at ${where} did not accept the username or the password: ${error.response ?? error.message}`;
    case 'ETIMEDOUT':
      return `${where} did not answer in time`;
    case 'ETLS':
      return error.response === undefined
        ? undefined
        : `the server at ${where} does not offer STARTTLS, and the config asks for it: ${error.response}`;
    case 'ESOCKET':
      return error.originalCode === 'ERR_SSL_WRONG_VERSION_NUMBER'
        ? `the server at ${where} does not begin with TLS: its encryption may be starttls, or none`
        : undefined;
    case 'ECONNECTION':
      return error.response === undefined ? `${where} closed the connection` : undefined;
    default:
      return undefined;
  }
}

/** The error of a mail that was not sent. */
export function sendError(thrown: unknown, where: string): ServiceError {
  const error: MailError = toError(thrown);
  if (error.code === 'EABORT') {
    return new ServiceError('deadline', 'the mail was given up; whether it was sent is not known', {
      cause: error,
    });
  }
  const isRefusal = error.code === 'EENVELOPE' || error.code === 'EMESSAGE';
  if (isRefusal && error.responseCode !== CLOSING) {
    return new ServiceError('backend', error.message, { cause: error });
  }
  return connectError(error, where);
}
