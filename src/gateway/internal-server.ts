/** The server of a gateway for other processes of this product: not the public port. Requests carry a token. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { AppError, toError } from '../errors.js';
import type {
  Delivery,
  Failure,
  Invocation,
  PreparationRequest,
  Release,
  RouteQuery,
} from '../internal/gateway-requests.js';
import { bearerCheck } from '../internal/serve.js';
import type { Log } from '../util/log.js';
import type { PreparedHandlers } from './handlers/prepared-handlers.js';
import type { Invocations } from './invocations.js';

/** Creates the server; it does not listen yet. */
export function createInternalServer(
  invocations: Invocations,
  prepared: PreparedHandlers,
  tokens: readonly string[],
  log: Log,
): Server {
  const isAllowed = bearerCheck(tokens);
  const routes: Readonly<Record<string, (body: unknown, signal: AbortSignal) => Promise<object>>> = {
    // Both sides have the same version, so the shapes are known.
    '/invoke': (body, signal) => invocations.invoke(body as Invocation, signal),
    '/deliver': (body) => invocations.deliver(body as Delivery),
    '/route': (body) => invocations.route(body as RouteQuery),
    '/prepare': (body, signal) => prepared.prepare(body as PreparationRequest, signal),
    '/release': async (body) => prepared.release(body as Release),
  };
  const serve = async (request: IncomingMessage, signal: AbortSignal): Promise<object> => {
    if (!isAllowed(request))
      throw new AppError('unauthorized', 'SECRET_KEY differs from that of the gateway.');
    const handle = request.method === 'POST' ? routes[request.url ?? ''] : undefined;
    if (!handle) throw new AppError('not_found', `There is no ${request.method} ${request.url}.`);
    return handle(await json(request), signal);
  };
  return createServer((request, response) => {
    const left = new AbortController();
    response.on('close', () => left.abort());
    serve(request, left.signal).then(
      (value) => send(response, 200, value),
      (thrown: unknown) => {
        if (left.signal.aborted) return;
        const error = thrown instanceof AppError ? thrown : internalError(thrown, log);
        // The rest of a body is discarded.
        if (!request.complete) request.resume();
        send(response, error.status, { code: error.code, error: error.message } satisfies Failure);
      },
    );
  });
}

function internalError(thrown: unknown, log: Log): AppError {
  log.error({ err: toError(thrown) }, 'an internal request failed');
  return new AppError('internal_error', 'The gateway failed; its log says why.');
}

function send(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}
