/** Forwards an HTTP request to another process of this machine, and its response back, as streams. */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { toError } from '../errors.js';
import { RawBodyAgent, takeBody } from './raw-body.js';
import { ServiceError } from './service-error.js';

/** A server on a Unix socket, and the bearer token of requests to it. */
export interface ForwardAddress {
  readonly socketPath: string;
  readonly token: string;
}

/** A connection for each request: one that is kept may be closed by the other side just when it is used again. */
const agent = new RawBodyAgent({ keepAlive: false });

/** @throws ServiceError unavailable, when there is no response */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { socketPath, token }: ForwardAddress,
): Promise<void> {
  const { method = 'GET', url: path = '/', headers } = request;
  const outgoing = httpRequest({
    socketPath,
    agent,
    method,
    path,
    headers: { ...headers, authorization: `Bearer ${token}` },
  });
  // When the client leaves, or a stalled transfer is aborted.
  response.once('close', () => outgoing.destroy());
  const answered = new Promise<readonly [IncomingMessage, Readable]>((resolve, reject) => {
    outgoing.once('error', (error) => {
      reject(new ServiceError('unavailable', `the process of the service has ended: ${error.message}`));
    });
    outgoing.once('response', (answer) => resolve([answer, method === 'GET' ? takeBody(answer) : answer]));
  });
  // It may answer before it has read all. Errors are those of the response.
  pipeline(request, outgoing).catch((thrown: unknown) => outgoing.destroy(toError(thrown)));
  const [{ statusCode = 502, headers: answerHeaders }, body] = await answered;
  response.writeHead(statusCode, answerHeaders);
  await pipeline(body, response);
}
