/**
 * The HTTP server of the management API, hardened for untrusted clients. It passes on unambiguous requests and rejects
 * all others; it closes connections that are too slow, and limits their number. `docs/HTTP.md` lists the response to
 * each kind of input. That of the gateway is `rust/front/src/http`.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../config.js';
import { AppError } from '../errors.js';
import { descriptorsForConnections } from '../util/file-descriptors.js';
import {
  afterEarlierResponses,
  answerClientError,
  type ErrorReporting,
  rawResponse,
} from './client-errors.js';
import { closeWithConnection } from './pipelined-responses.js';
import { type ReceivedHead, readHead } from './received-head.js';
import { SlowClientGuard } from './slow-client-guard.js';
import {
  AwaitedRequest,
  closeLingering,
  EarlyResponse,
  type HttpServer,
  isClosing,
  markClosing,
} from './unread-body.js';

/** The settings of the server. */
export type ServerConfig = Pick<
  Config,
  'HTTP_HEAD_TIMEOUT_MS' | 'HTTP_IDLE_TIMEOUT_MS' | 'HTTP_STALL_TIMEOUT_MS' | 'HTTP_MIN_BYTES_PER_SECOND'
>;

export interface HttpServerOptions extends ErrorReporting {
  readonly config: ServerConfig;
  /** Time to receive a whole request, milliseconds. */
  readonly requestTimeoutMs: number;
  /** Connections beyond this number are rejected. */
  readonly connectionsLimit: number;
  /** Methods that `Allow` names where no route matches. */
  readonly methods: readonly string[];
}

/** Receives accepted requests. */
export type Listener = (request: IncomingMessage, response: ServerResponse, head: ReceivedHead) => void;

const MAX_HEADER_BYTES = 16 * 1024;
const CHECK_EVERY_MS = 1_000;

/** Creates the server without listening. */
export function createHttpServer(options: HttpServerOptions, listener: Listener): HttpServer {
  const { config } = options;
  const server = createServer({
    IncomingMessage: AwaitedRequest,
    ServerResponse: EarlyResponse,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: config.HTTP_HEAD_TIMEOUT_MS,
    requestTimeout: Math.max(options.requestTimeoutMs, config.HTTP_HEAD_TIMEOUT_MS),
    keepAliveTimeout: config.HTTP_IDLE_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    // Checked by `readHead`, so that errors have our format.
    requireHostHeader: false,
    noDelay: true,
  });
  // Node would drop headers beyond a limit silently; `readHead` rejects too many.
  server.maxHeadersCount = 0;
  // A client that has closed its sending side still gets its response.
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;

  const onClientError = (error: Error, socket: Duplex) =>
    answerClientError(error, socket as Socket, MAX_HEADER_BYTES, options);
  server.on('clientError', onClientError);
  const guard = new SlowClientGuard(
    server,
    { stallTimeoutMs: config.HTTP_STALL_TIMEOUT_MS, minBytesPerSecond: config.HTTP_MIN_BYTES_PER_SECOND },
    (socket) =>
      onClientError(
        Object.assign(new Error('The body arrives too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        socket,
      ),
  );
  limitConnections(server, guard, options);

  const receive = (request: AwaitedRequest, response: EarlyResponse, unmet?: AppError) => {
    // Pipelined after a request whose response closes the connection.
    if (isClosing(request.socket)) return;
    closeWithConnection(response);
    const head = readHead(request);
    request.hasBody = head.hasBody;
    if (head.hasBody) guard.expectBody(request);
    const problem = head.problem ?? unmet;
    if (problem) refuse(response, problem, options);
    else listener(request, response, head);
  };
  server.on('request', (request, response) => receive(request, response));
  server.on('checkContinue', (request, response) => {
    request.continueWith = response;
    // Other listeners see an ordinary request.
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => {
    const message = 'The only supported expectation is "100-continue".';
    receive(request, response, new AppError('expectation_failed', message));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) =>
    refuseTunnel(socket as Socket, options),
  );
  return server;
}

/** Rejects a request and closes its connection: it is uncertain where the next request on it would begin. */
function refuse(response: EarlyResponse, error: AppError, options: HttpServerOptions): void {
  const requestId = randomUUID();
  const body = JSON.stringify(options.present(error));
  markClosing(response.req.socket);
  response.shouldKeepAlive = false;
  response
    .writeHead(error.status, {
      'Content-Type': 'application/json',
      'X-Request-Id': requestId,
      'Content-Length': Buffer.byteLength(body),
    })
    .end(body);
  options.refused(error, requestId);
}

/** Rejects CONNECT, for which Node has detached the connection from the server. */
function refuseTunnel(socket: Socket, options: HttpServerOptions): void {
  const error = new AppError('method_not_allowed', 'CONNECT is not supported: this is not a forward proxy.');
  const requestId = randomUUID();
  markClosing(socket);
  socket.on('error', () => socket.destroy());
  afterEarlierResponses(socket, () => {
    socket.end(rawResponse(error, requestId, options, `Allow: ${options.methods.join(', ')}\r\n`));
    closeLingering(socket);
    options.refused(error, requestId);
  });
}

/** Rejects connections beyond the limit with 503, so that file descriptors are left for requests under way. */
function limitConnections(server: HttpServer, guard: SlowClientGuard, options: HttpServerOptions): void {
  const limit = Math.min(options.connectionsLimit, descriptorsForConnections());
  server.prependListener('connection', (socket: Socket) => {
    if (guard.connections < limit) return;
    const error = new AppError('too_many_connections', `All ${limit} connections are in use.`);
    const requestId = randomUUID();
    markClosing(socket);
    socket.write(rawResponse(error, requestId, options, 'Retry-After: 1\r\n'));
    socket.destroySoon();
    options.refused(error, requestId);
  });
}
