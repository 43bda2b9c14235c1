/** The public HTTP server of one front: reads requests, finds their endpoint, answers with what its handler says. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { endInPieces } from '../http/pieces.js';
import { hostName, type ReceivedHead } from '../http/received-head.js';
import { createHttpServer, type ServerConfig } from '../http/server.js';
import type { HttpServer } from '../http/unread-body.js';
import type { Logger } from '../log.js';
import { newRequestId } from '../request-id.js';
import { ProtocolError } from '../wire/codec.js';
import type { RequestHead, ResponseHead } from '../wire/messages.js';
import type { FrontEndpoint, Outgoing } from './front-endpoint.js';
import type { FrontMetrics } from './front-metrics.js';
import { headersForHandler, withUtf8Headers } from './request-headers.js';
import { sendableHeaders } from './response-headers.js';
import type { Lookup, RouteTable } from './route-table.js';

/** What the server works with. */
export interface FrontServerOptions {
  readonly routes: RouteTable<FrontEndpoint>;
  readonly metrics: FrontMetrics;
  readonly log: Logger;
  /** Largest request body, bytes. */
  readonly bodyLimit: number;
  /** How clients are waited for, and how many there may be. */
  readonly http: ServerConfig;
  readonly connectionsLimit: number;
  /** Called once for each request that a handler answered. */
  readonly onHandled: () => void;
}

const NO_BODY = Buffer.alloc(0);
/** Up to this size a body goes out in the same write as the response head. */
const SMALL_BODY_BYTES = 4 * 1024;
const RETRY_AFTER = ['Retry-After', '1'];
const NO_ROOM = 'The gateway holds as many bodies as it may; try again in a moment.';
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
    (request, response, head) => new HttpExchange(request, response, head, options).begin(),
  );
}

/** One request, from its arrival to its answer. Written for few allocations: this is the path of every request. */
class HttpExchange implements Outgoing {
  head = '';
  body: Uint8Array = NO_BODY;
  deadline = 0;
  readonly #started = performance.now();
  readonly #requestId: string;
  #endpoint: FrontEndpoint | undefined;
  /** Bytes of the body, or then of the answer, that count as held. */
  #held = 0;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly received: ReceivedHead,
    private readonly options: FrontServerOptions,
  ) {
    this.#requestId = received.requestId ?? newRequestId();
  }

  /** Finds the endpoint, then sends the request there as soon as its body has arrived. */
  begin(): void {
    const { method = 'GET' } = this.request;
    const { authority, target, contentLength, hasBody } = this.received;
    const query = target.indexOf('?');
    const path = query === -1 ? target : target.slice(0, query);
    const found = this.options.routes.find(hostName(authority), method, path);
    if (found.kind !== 'found') this.#refuseMiss(found, method);
    else if (contentLength > this.options.bodyLimit) this.#refuseBody();
    else if (hasBody) this.#readBody(found.target, found.params);
    else this.#send(found.target, found.params);
  }

  respond(head: ResponseHead, body: Buffer, ownsBody: boolean): void {
    const headers = sendableHeaders(head);
    if (headers === undefined) {
      this.broken('the handler sent headers that HTTP does not allow');
      return;
    }
    const { response } = this;
    const { status } = head;
    const hasBody = status !== 204 && status !== 304;
    this.#letGo();
    if (hasBody && body.length > SMALL_BODY_BYTES && !this.#hold(body.length)) {
      this.#fail(503, NO_ROOM, RETRY_AFTER);
      return;
    }
    const lines = [...headers, 'X-Request-Id', this.#requestId];
    if (!hasBody) {
      response.writeHead(status, lines).end();
    } else {
      lines.push('Content-Length', String(body.length));
      response.writeHead(status, lines);
      if (body.length <= SMALL_BODY_BYTES) response.end(body.toString('latin1'), 'latin1');
      else endInPieces(response, ownsBody ? body : Buffer.from(body));
      // What the client has not taken yet is held until it has, or is gone.
      if (this.#held > 0) {
        const isSent = response.writableEnded && response.writableLength === 0;
        if (isSent || response.destroyed) this.#letGo();
        else response.once('close', () => this.#letGo());
      }
    }
    this.options.onHandled();
    this.#finish(status);
  }

  broken(reason: string): void {
    this.options.log.warn({ ...this.#ids(), reason }, 'handler broke off a request');
    this.#fail(502, 'The handler of this endpoint broke off.');
  }

  expired(): void {
    this.options.log.warn(this.#ids(), 'request ran over its deadline');
    this.#fail(504, `The handler did not answer within ${this.#endpoint?.limits.timeoutMs} ms.`);
  }

  unsent(): void {
    this.#endpoint?.forward(this);
  }

  unavailable(): void {
    this.#fail(503, 'The handler of this endpoint is not running.', RETRY_AFTER);
  }

  crowded(): void {
    const limit = this.#endpoint?.limits.concurrentRequests;
    this.#fail(429, `This endpoint has ${limit} requests to work on already.`, RETRY_AFTER);
  }

  #send(endpoint: FrontEndpoint, params: RequestHead['params']): void {
    const { request } = this;
    const { timeoutMs } = endpoint.limits;
    const head: RequestHead = {
      method: request.method ?? 'GET',
      target: this.received.target,
      headers: headersForHandler(request.rawHeaders, this.received),
      params,
      client_ip: request.socket.remoteAddress ?? '',
      request_id: this.#requestId,
      deadline_ms: timeoutMs,
    };
    this.head = withUtf8Headers(JSON.stringify(head), head);
    this.deadline = performance.now() + timeoutMs;
    this.#endpoint = endpoint;
    try {
      endpoint.dispatch(this);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(413, error.message);
    }
  }

  #readBody(endpoint: FrontEndpoint, params: RequestHead['params']): void {
    const { request } = this;
    this.#endpoint = endpoint;
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      const isTooLong = length > this.options.bodyLimit;
      if (!isTooLong && this.#hold(chunk.length)) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      request.off('end', onEnd);
      chunks.length = 0;
      this.#letGo();
      if (isTooLong) this.#refuseBody();
      else this.#refuse(503, NO_ROOM, RETRY_AFTER);
    };
    const onEnd = () => {
      this.body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length);
      this.#send(endpoint, params);
    };
    request.on('data', onData);
    request.on('end', onEnd);
    // The client went away in the middle of its body: nobody is left to answer.
    request.on('error', () => this.#letGo());
  }

  #refuseMiss(miss: Exclude<Lookup<FrontEndpoint>, { kind: 'found' }>, method: string): void {
    // OPTIONS of the server as such.
    if (this.received.target === '*') this.#refuse(404, 'There is no endpoint at this address.');
    else if (miss.kind === 'malformed') this.#refuse(400, 'The path of the request is not a valid path.');
    else if (miss.kind === 'unknown') this.#refuse(404, 'There is no endpoint at this address.');
    else this.#refuse(405, `This address does not answer ${method}.`, ['Allow', miss.allow.join(', ')]);
  }

  #refuseBody(): void {
    this.#refuse(413, `The body is larger than the ${this.options.bodyLimit} bytes this gateway accepts.`);
  }

  /** Answers a request that goes to no handler. */
  #refuse(status: number, error: string, extra: readonly string[] = []): void {
    this.options.metrics.refused(status);
    // A small body has come with its head, and will have been read by then: the connection can be kept.
    if (this.received.hasBody) setImmediate(() => this.#sendError(status, error, extra));
    else this.#sendError(status, error, extra);
  }

  /** Answers a request in the place of its handler. */
  #fail(status: number, error: string, extra: readonly string[] = []): void {
    this.#letGo();
    this.#sendError(status, error, extra);
    this.#finish(status);
  }

  #sendError(status: number, error: string, extra: readonly string[]): void {
    const body = JSON.stringify({ error });
    const lines = ['Content-Type', 'application/json', 'X-Request-Id', this.#requestId, ...extra];
    lines.push('Content-Length', String(Buffer.byteLength(body)));
    this.response.writeHead(status, lines).end(body);
  }

  /** @returns false when there is no room for so many bytes more */
  #hold(bytes: number): boolean {
    if (!this.#endpoint?.hold(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  #letGo(): void {
    if (this.#held === 0) return;
    this.#endpoint?.letGo(this.#held);
    this.#held = 0;
  }

  #finish(status: number): void {
    const { address } = this.#endpoint ?? {};
    const ms = performance.now() - this.#started;
    address?.metrics.finished(status, ms / 1000);
    const { log } = this.options;
    if (!log.isLevelEnabled('debug')) return;
    log.debug({ ...this.#ids(), method: this.request.method, route: address?.route, status, ms }, 'request');
  }

  #ids(): { request_id: string; endpoint_id: string | undefined } {
    return { request_id: this.#requestId, endpoint_id: this.#endpoint?.id };
  }
}
