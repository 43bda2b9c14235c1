/** The public HTTP server of a front: reads requests, finds their endpoints, and sends the responses of handlers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostName, type ReceivedHead } from '../http/received-head.js';
import { newRequestId } from '../http/request-id.js';
import { sendBody } from '../http/send-body.js';
import { createHttpServer, type ServerConfig } from '../http/server.js';
import type { HttpServer } from '../http/unread-body.js';
import type { Logger } from '../util/log.js';
import { ProtocolError } from '../wire/codec.js';
import type { RequestHead, ResponseHead } from '../wire/messages.js';
import type { FrontEndpoint, Outgoing } from './front-endpoint.js';
import type { FrontMetrics } from './front-metrics.js';
import { headersForHandler, withUtf8Headers } from './request-headers.js';
import { sendableHeaders } from './response-headers.js';
import type { Lookup, RouteTable } from './route-table.js';

/** Dependencies of the server. */
export interface FrontServerOptions {
  readonly routes: RouteTable<FrontEndpoint>;
  readonly metrics: FrontMetrics;
  readonly log: Logger;
  /** Largest request body, bytes. */
  readonly bodyLimit: number;
  /** Timeouts and limits of connections. */
  readonly http: ServerConfig;
  readonly connectionsLimit: number;
  /** Called once for each request that a handler answered. */
  readonly onHandled: () => void;
}

const NO_BODY = Buffer.alloc(0);
/** Up to this size a body is written together with the head of the response. */
const SMALL_BODY_BYTES = 4 * 1024;
const RETRY_AFTER = ['Retry-After', '1'];
const OUT_OF_MEMORY = 'The gateway has no memory left for this body; try again in a moment.';
/** Time to receive a whole request. */
const RECEIVE_LIMIT_MS = 300_000;
const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'];

/** Makes the server; it does not listen yet. */
export function createFrontServer(options: FrontServerOptions): HttpServer {
  return createHttpServer(
    {
      config: options.http,
      requestTimeoutMs: RECEIVE_LIMIT_MS,
      connectionsLimit: options.connectionsLimit,
      methods: METHODS,
      present: ({ message }) => ({ error: message }),
      refused: ({ status }) => options.metrics.refused(status),
    },
    (request, response, head) => new HttpExchange(request, response, head, options).start(),
  );
}

/** One request and its response. Every request takes this path: it is written for few allocations. */
class HttpExchange implements Outgoing {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #received: ReceivedHead;
  readonly #options: FrontServerOptions;
  head = '';
  body: Uint8Array = NO_BODY;
  deadline = 0;
  #timeoutMs = 0;
  readonly #started = performance.now();
  readonly #requestId: string;
  #endpoint: FrontEndpoint | undefined;
  /** Memory reserved for the body of the request, and then of the response. */
  #reserved = 0;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    received: ReceivedHead,
    options: FrontServerOptions,
  ) {
    this.#request = request;
    this.#response = response;
    this.#received = received;
    this.#options = options;
    this.#requestId = received.requestId ?? newRequestId();
  }

  /** Finds the endpoint, and sends the request when its body has arrived. */
  start(): void {
    const { method = 'GET' } = this.#request;
    const { authority, target, contentLength, hasBody } = this.#received;
    const query = target.indexOf('?');
    const path = query === -1 ? target : target.slice(0, query);
    const found = this.#options.routes.find(hostName(authority), method, path);
    if (found.kind !== 'found') this.#refuseMiss(found, method);
    else if (contentLength > this.#options.bodyLimit) this.#refuseBody();
    else if (hasBody) this.#readBody(found.target, found.params);
    else this.#send(found.target, found.params);
  }

  respond(head: ResponseHead, body: Buffer, ownsBody: boolean): void {
    const headers = sendableHeaders(head);
    if (headers === undefined) {
      this.aborted('the handler sent headers that HTTP does not allow');
      return;
    }
    const response = this.#response;
    const { status } = head;
    const hasBody = status !== 204 && status !== 304;
    this.#release();
    if (hasBody && body.length > SMALL_BODY_BYTES && !this.#reserve(body.length)) {
      this.#fail(503, OUT_OF_MEMORY, RETRY_AFTER);
      return;
    }
    const lines = [...headers, 'X-Request-Id', this.#requestId];
    if (!hasBody) {
      response.writeHead(status, lines).end();
    } else {
      lines.push('Content-Length', String(body.length));
      response.writeHead(status, lines);
      if (body.length <= SMALL_BODY_BYTES) response.end(body.toString('latin1'), 'latin1');
      else sendBody(response, ownsBody ? body : Buffer.from(body));
      // Released when the client has received it, or has disconnected.
      if (this.#reserved > 0) {
        const isSent = response.writableEnded && response.writableLength === 0;
        if (isSent || response.destroyed) this.#release();
        else response.once('close', () => this.#release());
      }
    }
    this.#options.onHandled();
    this.#finish(status);
  }

  aborted(reason: string): void {
    this.#options.log.warn({ ...this.#ids(), reason }, 'handler aborted a request');
    this.#fail(502, 'The handler of this endpoint aborted the request.');
  }

  expired(): void {
    this.#options.log.warn(this.#ids(), 'request exceeded its deadline');
    this.#fail(504, `The handler did not answer within ${this.#timeoutMs} ms.`);
  }

  unsent(): void {
    this.#endpoint?.forward(this);
  }

  unavailable(): void {
    this.#fail(503, 'The handler of this endpoint is not running.', RETRY_AFTER);
  }

  overloaded(): void {
    const limit = this.#endpoint?.limits.concurrentRequests;
    this.#fail(429, `This endpoint has reached its limit of ${limit} concurrent requests.`, RETRY_AFTER);
  }

  #send(endpoint: FrontEndpoint, params: RequestHead['params']): void {
    const request = this.#request;
    const { timeoutMs } = endpoint.limits;
    const head: RequestHead = {
      method: request.method ?? 'GET',
      target: this.#received.target,
      headers: headersForHandler(request.rawHeaders, this.#received),
      params,
      client_ip: request.socket.remoteAddress ?? '',
      request_id: this.#requestId,
      deadline_ms: timeoutMs,
    };
    this.head = withUtf8Headers(JSON.stringify(head), head);
    this.deadline = performance.now() + timeoutMs;
    this.#timeoutMs = timeoutMs;
    this.#endpoint = endpoint;
    try {
      endpoint.dispatch(this);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(413, error.message);
    }
  }

  #readBody(endpoint: FrontEndpoint, params: RequestHead['params']): void {
    const request = this.#request;
    this.#endpoint = endpoint;
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      const isTooLong = length > this.#options.bodyLimit;
      if (!isTooLong && this.#reserve(chunk.length)) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      request.off('end', onEnd);
      chunks.length = 0;
      this.#release();
      if (isTooLong) this.#refuseBody();
      else this.#refuse(503, OUT_OF_MEMORY, RETRY_AFTER);
    };
    const onEnd = () => {
      this.body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length);
      this.#send(endpoint, params);
    };
    request.on('data', onData);
    request.on('end', onEnd);
    // The client disconnected in the middle of its body.
    request.on('error', () => this.#release());
  }

  #refuseMiss(miss: Exclude<Lookup<FrontEndpoint>, { kind: 'found' }>, method: string): void {
    // OPTIONS of the server as a whole.
    if (this.#received.target === '*') this.#refuse(404, 'There is no endpoint at this address.');
    else if (miss.kind === 'malformed') this.#refuse(400, 'The path of the request is not a valid path.');
    else if (miss.kind === 'unknown') this.#refuse(404, 'There is no endpoint at this address.');
    else this.#refuse(405, `This address does not answer ${method}.`, ['Allow', miss.allow.join(', ')]);
  }

  #refuseBody(): void {
    this.#refuse(413, `The body is larger than the ${this.#options.bodyLimit} bytes this gateway accepts.`);
  }

  /** Answers a request that is sent to no handler. */
  #refuse(status: number, error: string, extra: readonly string[] = []): void {
    this.#options.metrics.refused(status);
    // A small body arrived with its head, and will have been read by then: the connection can stay open.
    if (this.#received.hasBody) setImmediate(() => this.#sendError(status, error, extra));
    else this.#sendError(status, error, extra);
  }

  /** Answers a request instead of its handler. */
  #fail(status: number, error: string, extra: readonly string[] = []): void {
    this.#release();
    this.#sendError(status, error, extra);
    this.#finish(status);
  }

  #sendError(status: number, error: string, extra: readonly string[]): void {
    const body = JSON.stringify({ error });
    const lines = ['Content-Type', 'application/json', 'X-Request-Id', this.#requestId, ...extra];
    lines.push('Content-Length', String(Buffer.byteLength(body)));
    this.#response.writeHead(status, lines).end(body);
  }

  /** Reserves memory for a body. @returns false when there is none */
  #reserve(bytes: number): boolean {
    if (!this.#endpoint?.reserve(bytes)) return false;
    this.#reserved += bytes;
    return true;
  }

  #release(): void {
    if (this.#reserved === 0) return;
    this.#endpoint?.release(this.#reserved);
    this.#reserved = 0;
  }

  #finish(status: number): void {
    const { address } = this.#endpoint ?? {};
    const ms = performance.now() - this.#started;
    address?.metrics.finished(status, ms / 1000);
    const { log } = this.#options;
    if (!log.isLevelEnabled('debug')) return;
    log.debug({ ...this.#ids(), method: this.#request.method, route: address?.route, status, ms }, 'request');
  }

  #ids(): { request_id: string; endpoint_id: string | undefined } {
    return { request_id: this.#requestId, endpoint_id: this.#endpoint?.id };
  }
}
