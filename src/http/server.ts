/**
 * An HTTP server for the open network: what both the management API and the gateway listen with. It hands on requests
 * that can be taken in one way only, and answers all others itself; it ends connections that are too slow, and refuses
 * those that are too many. `docs/HTTP.md` says what each input gets.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../config.js';
import { AppError } from '../errors.js';
import { descriptorsForConnections } from '../file-descriptors.js';
import { afterEarlierAnswers, answerClientError, type Presentation, rawAnswer } from './client-errors.js';
import { Pace } from './pace.js';
import { closeWithConnection } from './queued-answers.js';
import { type ReceivedHead, readHead } from './received-head.js';
import {
  AwaitedRequest,
  closeLingering,
  EarlyResponse,
  type HttpServer,
  isClosing,
  markClosing,
} from './unread-body.js';

/** The settings it works by. */
export type ServerConfig = Pick<
  Config,
  'HTTP_HEAD_TIMEOUT_MS' | 'HTTP_IDLE_TIMEOUT_MS' | 'HTTP_PATIENCE_MS' | 'HTTP_MIN_BYTES_PER_SECOND'
>;

export interface HttpServerOptions extends Presentation {
  readonly config: ServerConfig;
  /** Time to receive a whole request, however fast it comes, milliseconds. */
  readonly requestTimeoutMs: number;
  /** More connections than this are refused. */
  readonly connectionsLimit: number;
  /** The methods that any address here may have. */
  readonly methods: readonly string[];
}

/** What gets the requests; by then it is certain where they go. */
export type Listener = (request: IncomingMessage, response: ServerResponse, head: ReceivedHead) => void;

const MAX_HEADER_BYTES = 16 * 1024;
const CHECK_EVERY_MS = 1_000;

/** Makes the server; it does not listen yet. */
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
    // Looked at here, so that the answer is ours.
    requireHostHeader: false,
    noDelay: true,
  });
  // All are received, so that too many are refused: beyond a limit, Node would leave them out without a word.
  server.maxHeadersCount = 0;
  // A client that has said all it wants to say still gets its answer.
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;

  const onClientError = (error: Error, socket: Duplex) =>
    answerClientError(error, socket as Socket, MAX_HEADER_BYTES, options);
  server.on('clientError', onClientError);
  const pace = new Pace(
    server,
    { patienceMs: config.HTTP_PATIENCE_MS, minBytesPerSecond: config.HTTP_MIN_BYTES_PER_SECOND },
    (socket) =>
      onClientError(
        Object.assign(new Error('The body comes too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        socket,
      ),
  );
  limitConnections(server, pace, options);

  const receive = (request: AwaitedRequest, response: EarlyResponse, unmet?: AppError) => {
    // Came in one write with a request after which the connection closes.
    if (isClosing(request.socket)) return;
    closeWithConnection(response);
    const head = readHead(request);
    request.hasBody = head.hasBody;
    if (head.hasBody) pace.expectBody(request);
    const problem = head.problem ?? unmet;
    if (problem) refuse(response, problem, options);
    else listener(request, response, head);
  };
  server.on('request', (request, response) => receive(request, response));
  server.on('checkContinue', (request, response) => {
    request.askWith = response;
    // To whoever else looks at requests, it is one like the others.
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => {
    const message = 'The only expectation that can be met here is "100-continue".';
    receive(request, response, new AppError('expectation_failed', message));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) =>
    refuseTunnel(socket as Socket, options),
  );
  return server;
}

/** Answers a request and closes its connection: it is not certain where the next request on it would begin. */
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

/** CONNECT: Node has taken the connection out of its hands. */
function refuseTunnel(socket: Socket, options: HttpServerOptions): void {
  const error = new AppError('method_not_allowed', 'This is no proxy: it does not answer CONNECT.');
  const requestId = randomUUID();
  markClosing(socket);
  socket.on('error', () => socket.destroy());
  afterEarlierAnswers(socket, () => {
    socket.end(rawAnswer(error, requestId, options, `Allow: ${options.methods.join(', ')}\r\n`));
    closeLingering(socket);
    options.refused(error, requestId);
  });
}

/** Connections beyond the limit are told so and closed, so that file descriptors are left for what is under way. */
function limitConnections(server: HttpServer, pace: Pace, options: HttpServerOptions): void {
  const limit = Math.min(options.connectionsLimit, descriptorsForConnections());
  server.prependListener('connection', (socket: Socket) => {
    if (pace.connections < limit) return;
    const error = new AppError('too_many_connections', `There are ${limit} connections already.`);
    const requestId = randomUUID();
    markClosing(socket);
    socket.write(rawAnswer(error, requestId, options, 'Retry-After: 1\r\n'));
    socket.destroySoon();
    options.refused(error, requestId);
  });
}
