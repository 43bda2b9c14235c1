/** What the errors of the MongoDB library mean. */
import {
  BSON,
  MongoClientClosedError,
  MongoDriverError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb';
import { toError } from '../../errors.js';
import { networkReason, unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

const UNAUTHORIZED = 13;
const AUTHENTICATION_FAILED = 18;

const CONNECTION_ERRORS = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoNotConnectedError,
  MongoClientClosedError,
];

/** The error of a connection that could not be made. */
export function connectError(thrown: unknown, where: string, hasUser: boolean): ServiceError {
  return unavailable(thrown, where, refusalReason(thrown, where, hasUser));
}

function refusalReason(thrown: unknown, where: string, hasUser: boolean): string | undefined {
  const error = serverError(thrown);
  if (!error) return silenceReason(thrown, where);
  if (error.code === AUTHENTICATION_FAILED) {
    return `the server at ${where} did not accept the username or the password`;
  }
  if (error.code === UNAUTHORIZED) {
    return hasUser
      ? `the server at ${where} does not let this user into the database: ${error.message}`
      : `the server at ${where} wants a username and a password, and the config has none`;
  }
  return `the server at ${where} refused: ${error.message}`;
}

/** The library waits for a server that is connected and says nothing, as for one that is no primary yet. */
function silenceReason(thrown: unknown, where: string): string | undefined {
  const isTimeout = thrown instanceof MongoServerSelectionError || thrown instanceof MongoNetworkTimeoutError;
  return isTimeout && networkReason(thrown, where) === undefined
    ? `${where} did not answer in time, or is no server that takes writes`
    : undefined;
}

/** The answer of a server, wherever it stands behind the error. */
function serverError(thrown: unknown): MongoServerError | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof MongoServerError) return error;
  }
  return undefined;
}

/** The error of a call. */
export function callError(thrown: unknown, where: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error = toError(thrown);
  if (CONNECTION_ERRORS.some((kind) => error instanceof kind)) {
    return unavailable(error, where, silenceReason(error, where));
  }
  if (error instanceof MongoServerError) {
    const code = [error.codeName, error.code].filter((part) => part !== undefined).join(' ');
    return new ServiceError('backend', code === '' ? error.message : `${error.message} (${code})`);
  }
  // The library refused to send it: values that BSON cannot hold, names and options it knows to be wrong.
  if (error instanceof MongoDriverError || error instanceof BSON.BSONError || error instanceof RangeError) {
    return new ServiceError('invalid', error.message, { cause: error });
  }
  return unavailable(error, where);
}
