/** Answers to what Node's HTTP server cannot read as a request, in the form of the server it came to. */
import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError, type ErrorCode } from './errors.js';

/** What was answered. */
export interface ClientErrorAnswer {
  readonly error: AppError;
  readonly requestId: string;
}

/**
 * To be called for the server's event `clientError`. Answers with the body that `present` makes, and closes the connection.
 * @returns undefined when nothing could be answered
 */
export function answerClientError(
  cause: Error,
  socket: Duplex,
  maxHeaderBytes: number,
  present: (error: AppError) => object,
): ClientErrorAnswer | undefined {
  const reason = 'code' in cause ? String(cause.code) : '';
  // Gone, or in the middle of an answer: nothing can be said any more.
  const current = (socket as { _httpMessage?: ServerResponse | null })._httpMessage;
  if (reason === 'ECONNRESET' || !socket.writable || current?.headersSent) {
    socket.destroy();
    return undefined;
  }
  const [code, message] = problem(reason, maxHeaderBytes);
  const error = new AppError(code, message, {}, { cause });
  const requestId = randomUUID();
  const body = JSON.stringify(present(error));
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json\r\n` +
      `X-Request-Id: ${requestId}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return { error, requestId };
}

function problem(reason: string, maxHeaderBytes: number): [ErrorCode, string] {
  if (reason === 'HPE_HEADER_OVERFLOW')
    return ['headers_too_large', `The headers are larger than the ${maxHeaderBytes} bytes accepted here.`];
  if (reason === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['request_timeout', 'The request did not arrive in time.'];
  return ['malformed_request', 'This is not an HTTP request that can be read.'];
}
