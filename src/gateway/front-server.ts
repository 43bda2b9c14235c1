/** The public HTTP server of one front: reads requests, finds their endpoint, answers with what its handler says. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from '../log.js';
import { ProtocolError } from '../wire/codec.js';
import type { RequestHead, ResponseHead } from '../wire/messages.js';
import type { FrontEndpoint, Outgoing } from './front-endpoint.js';
import type { FrontMetrics } from './front-metrics.js';
import { readRequestHeaders } from './request-headers.js';
import { sendableHeaders } from './response-headers.js';
import type { RouteTable } from './route-table.js';

/** What the server works with. */
export interface FrontServerOptions {
  readonly routes: RouteTable<FrontEndpoint>;
  readonly metrics: FrontMetrics;
  readonly log: Logger;
  /** Deadline of a request in its handler, milliseconds. */
  readonly requestTimeoutMs: number;
  /** Largest request body, bytes. */
  readonly bodyLimit: number;
  /** Called once for each request that a handler answered. */
  readonly onHandled: () => void;
}

const NO_BODY = Buffer.alloc(0);
/** Up to this size a body goes out in the same write as the response head. */
const SMALL_BODY_BYTES = 16 * 1024;
const RETRY_AFTER_SECONDS = '1';

/** Makes the server; it does not listen yet. */
export function createFrontServer(options: FrontServerOptions): Server {
  const server = createServer(
    {
      maxHeaderSize: 16 * 1024,
      headersTimeout: 30_000,
      requestTimeout: 300_000,
      // Longer than the idle time of the usual load balancers, so that they are the ones to close.
      keepAliveTimeout: 75_000,
      requireHostHeader: true,
      noDelay: true,
    },
    (request, response) => handle(request, response, options),
  );
  return server;
}

function handle(request: IncomingMessage, response: ServerResponse, options: FrontServerOptions): void {
  const started = performance.now();
  const headers = readRequestHeaders(request.rawHeaders);
  const requestId = headers.requestId ?? randomUUID();
  const target = request.url ?? '/';
  const query = target.indexOf('?');
  const method = request.method ?? 'GET';

  const found = options.routes.find(headers.host, method, query === -1 ? target : target.slice(0, query));
  const refuse = (status: number, error: string, extra: readonly string[] = []) => {
    options.metrics.refused(status);
    // What is left of the body is not read: the connection cannot be used again.
    if (headers.hasBody) response.shouldKeepAlive = false;
    sendError(response, requestId, status, error, extra);
  };
  switch (found.kind) {
    case 'malformed':
      return refuse(400, 'The path of the request is not a valid path.');
    case 'unknown':
      return refuse(404, 'There is no endpoint at this address.');
    case 'wrong-method':
      return refuse(405, `This address does not answer ${method}.`, ['Allow', found.allow.join(', ')]);
    case 'found':
  }
  const tooLarge = `The body is larger than the ${options.bodyLimit} bytes this gateway accepts.`;
  if (headers.contentLength > options.bodyLimit) return refuse(413, tooLarge);

  const send = (body: Uint8Array) => {
    const head: RequestHead = {
      method,
      target,
      headers: request.rawHeaders,
      params: found.params,
      client_ip: request.socket.remoteAddress ?? '',
      request_id: requestId,
      deadline_ms: options.requestTimeoutMs,
    };
    const deadline = performance.now() + options.requestTimeoutMs;
    const exchange = new HttpExchange(
      response,
      JSON.stringify(head),
      body,
      deadline,
      requestId,
      started,
      found.target,
      options,
    );
    try {
      found.target.dispatch(exchange);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      refuse(413, error.message);
    }
  };
  if (!headers.hasBody) return send(NO_BODY);
  readBody(request, options.bodyLimit, send, () => refuse(413, tooLarge));
}

function readBody(
  request: IncomingMessage,
  limit: number,
  onBody: (body: Uint8Array) => void,
  onTooLarge: () => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    if (length <= limit) {
      chunks.push(chunk);
      return;
    }
    request.off('data', onData);
    request.off('end', onEnd);
    request.pause();
    onTooLarge();
  };
  const onEnd = () => onBody(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length));
  request.on('data', onData);
  request.on('end', onEnd);
  // The client went away in the middle of its body: nobody is left to answer.
  request.on('error', () => undefined);
}

/** One request on its way to a handler and back. */
class HttpExchange implements Outgoing {
  constructor(
    private readonly response: ServerResponse,
    readonly head: string,
    readonly body: Uint8Array,
    readonly deadline: number,
    private readonly requestId: string,
    private readonly started: number,
    private readonly endpoint: FrontEndpoint,
    private readonly options: FrontServerOptions,
  ) {}

  respond(head: ResponseHead, body: Buffer): void {
    const headers = sendableHeaders(head);
    if (headers === undefined) return this.broken('the handler sent headers that HTTP does not allow');
    const { response } = this;
    const { status } = head;
    const hasBody = status !== 204 && status !== 304;
    // For HEAD, Node keeps the length and leaves the body out.
    const lines = [...headers, 'X-Request-Id', this.requestId];
    if (hasBody) lines.push('Content-Length', String(body.length));
    response.writeHead(status, lines);
    if (!hasBody || body.length === 0) response.end();
    else if (body.length <= SMALL_BODY_BYTES) response.end(body.toString('latin1'), 'latin1');
    else response.end(body);
    this.options.onHandled();
    this.#finish(status);
  }

  broken(reason: string): void {
    this.options.log.warn(
      { endpoint_id: this.endpoint.id, request_id: this.requestId, reason },
      'handler broke off a request',
    );
    this.#fail(502, 'The handler of this endpoint broke off.');
  }

  expired(): void {
    this.options.log.warn(
      { endpoint_id: this.endpoint.id, request_id: this.requestId },
      'request ran over its deadline',
    );
    this.#fail(504, `The handler did not answer within ${this.options.requestTimeoutMs} ms.`);
  }

  unavailable(): void {
    this.#fail(503, 'The handler of this endpoint is not running.', ['Retry-After', RETRY_AFTER_SECONDS]);
  }

  #fail(status: number, error: string, extra: readonly string[] = []): void {
    sendError(this.response, this.requestId, status, error, extra);
    this.#finish(status);
  }

  #finish(status: number): void {
    const ms = performance.now() - this.started;
    this.endpoint.address.metrics.finished(status, ms / 1000);
    const { log } = this.options;
    if (log.isLevelEnabled('debug')) {
      const { method, route } = this.endpoint.address;
      log.debug(
        { request_id: this.requestId, endpoint_id: this.endpoint.id, method, route, status, ms },
        'request',
      );
    }
  }
}

function sendError(
  response: ServerResponse,
  requestId: string,
  status: number,
  error: string,
  extra: readonly string[],
): void {
  const body = JSON.stringify({ error });
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'X-Request-Id',
    requestId,
    ...extra,
    'Content-Length',
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}
