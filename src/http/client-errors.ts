/** Responses to input that Node's HTTP server cannot parse, in the error format of each server. */
import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { AppError, type ErrorCode } from '../errors.js';
import { closeLingering, isClosing, markClosing } from './unread-body.js';

/** How a server reports errors of HTTP itself. */
export interface ErrorReporting {
  /** The body of an error response. */
  present(error: AppError): object;
  /** Called for every such response. @param cause the error of Node's parser */
  refused(error: AppError, requestId: string, cause?: Error): void;
}

/**
 * Handles the server's event `clientError`: sends the error once all earlier requests have their responses, and closes
 * the connection.
 */
export function answerClientError(
  cause: Error,
  socket: Socket,
  maxHeaderBytes: number,
  reporting: ErrorReporting,
): void {
  const reason = 'code' in cause ? String(cause.code) : '';
  // The bytes that follow cause the same error again.
  if (isClosing(socket) && reason !== 'ERR_HTTP_REQUEST_TIMEOUT') return;
  markClosing(socket);
  // The client cannot receive a response.
  if (reason === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  afterEarlierResponses(socket, (current) => {
    if (current?.headersSent) {
      socket.destroy();
    } else if (reason !== 'HPE_CLOSED_CONNECTION') {
      const error = problem(reason, maxHeaderBytes);
      const requestId = randomUUID();
      socket.end(rawResponse(error, requestId, reporting));
      closeLingering(socket);
      reporting.refused(error, requestId, cause);
    }
  });
}

/**
 * Calls back once all complete requests of a connection have their responses, if it is still open then.
 * @param then gets the response to a request that has not arrived completely, if there is one
 */
export function afterEarlierResponses(
  socket: Socket,
  then: (current: ServerResponse | undefined) => void,
): void {
  if (!socket.writable) return;
  // Node has no public API for it.
  const current = (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
  // Node assigns the connection to the next response before this one emits `close`.
  if (current?.req.complete) current.once('close', () => afterEarlierResponses(socket, then));
  else then(current);
}

/** The text of a response, for a connection without a request object. */
export function rawResponse(
  error: AppError,
  requestId: string,
  { present }: ErrorReporting,
  extra = '',
): string {
  const body = JSON.stringify(present(error));
  return (
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json\r\n` +
    `X-Request-Id: ${requestId}\r\n${extra}Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

function problem(reason: string, maxHeaderBytes: number): AppError {
  const [code, message] = describe(reason, maxHeaderBytes);
  return new AppError(code, message);
}

function describe(reason: string, maxHeaderBytes: number): [ErrorCode, string] {
  if (reason === 'HPE_HEADER_OVERFLOW')
    return ['headers_too_large', `The headers are larger than the ${maxHeaderBytes} bytes accepted here.`];
  if (reason === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['request_timeout', 'The request did not arrive in time.'];
  return ['malformed_request', 'The request is not valid HTTP.'];
}
