/** Answers to what Node's HTTP server cannot read as a request, in the form of the server it came to. */
import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { AppError, type ErrorCode } from '../errors.js';
import { closeLingering, isClosing, markClosing } from './unread-body.js';

/** How a server shows its own errors. */
export interface Presentation {
  /** The body of an answer. */
  present(error: AppError): object;
  /** Called for every answer of the server itself. `cause` is what Node said of the connection. */
  refused(error: AppError, requestId: string, cause?: Error): void;
}

/**
 * To be called for the server's event `clientError`. Answers once all requests before have been answered, and closes the
 * connection.
 */
export function answerClientError(
  cause: Error,
  socket: Socket,
  maxHeaderBytes: number,
  presentation: Presentation,
): void {
  const reason = 'code' in cause ? String(cause.code) : '';
  // Whatever follows on this connection causes the same error again.
  if (isClosing(socket) && reason !== 'ERR_HTTP_REQUEST_TIMEOUT') return;
  markClosing(socket);
  // Gone: nothing can be said any more.
  if (reason === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  afterEarlierAnswers(socket, (current) => {
    if (current?.headersSent) {
      socket.destroy();
    } else if (reason !== 'HPE_CLOSED_CONNECTION') {
      const error = problem(reason, maxHeaderBytes);
      const requestId = randomUUID();
      socket.end(rawAnswer(error, requestId, presentation));
      closeLingering(socket);
      presentation.refused(error, requestId, cause);
    }
  });
}

/**
 * Calls back once all requests that have arrived on a connection are answered, if it is still open then: with the answer
 * to one that has not arrived completely, if there is one.
 */
export function afterEarlierAnswers(
  socket: Socket,
  then: (current: ServerResponse | undefined) => void,
): void {
  if (!socket.writable) return;
  // Node has no public way to ask for it.
  const current = (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
  // Its connection goes over to the next answer before this one is closed.
  if (current?.req.complete) current.once('close', () => afterEarlierAnswers(socket, then));
  else then(current);
}

/** An answer where there is no request to give it to. */
export function rawAnswer(error: AppError, requestId: string, { present }: Presentation, extra = ''): string {
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
  return ['malformed_request', 'This is not an HTTP request that can be read.'];
}
