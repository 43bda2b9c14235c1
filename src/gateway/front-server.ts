/** The public HTTP server of one front: reads requests, finds their endpoint, answers with what its handler says. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { answerClientError } from '../client-errors.js';
import type { Logger } from '../log.js';
import { newRequestId } from '../request-id.js';
import { ProtocolError } from '../wire/codec.js';
import type { RequestHead, ResponseHead } from '../wire/messages.js';
import type { FrontEndpoint, Outgoing } from './front-endpoint.js';
import type { FrontMetrics } from './front-metrics.js';
import { type RequestHeaders, readRequestHeaders, readTarget, type Target } from './request-headers.js';
import { sendableHeaders } from './response-headers.js';
import type { Lookup, RouteTable } from './route-table.js';

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
const SMALL_BODY_BYTES = 4 * 1024;
const RETRY_AFTER_SECONDS = '1';
/** How long the rest of a body is read that nobody wants, and how long nothing of it may come. */
const LINGER_MS = 30_000;
const LINGER_IDLE_MS = 1_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** Makes the server; it does not listen yet. */
export function createFrontServer(options: FrontServerOptions): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: 30_000,
      requestTimeout: 300_000,
      // Longer than the idle time of the usual load balancers, so that they are the ones to close.
      keepAliveTimeout: 75_000,
      // Looked at here, so that the answer is ours.
      requireHostHeader: false,
      noDelay: true,
    },
    (request, response) => new HttpExchange(request, response, options).begin(),
  );
  server.on('clientError', (error, socket) => {
    const answer = answerClientError(error, socket, MAX_HEADER_BYTES, ({ message }) => ({ error: message }));
    if (answer) options.metrics.refused(answer.error.status);
  });
  return server;
}

/** One request, from its arrival to its answer. Written for few allocations: this is the path of every request. */
class HttpExchange implements Outgoing {
  head = '';
  body: Uint8Array = NO_BODY;
  deadline = 0;
  readonly #started = performance.now();
  readonly #headers: RequestHeaders;
  readonly #target: Target;
  readonly #requestId: string;
  #endpoint: FrontEndpoint | undefined;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly options: FrontServerOptions,
  ) {
    this.#headers = readRequestHeaders(request.rawHeaders);
    this.#target = readTarget(request.url ?? '/');
    this.#requestId = this.#headers.requestId ?? newRequestId();
  }

  /** Finds the endpoint, then sends the request there as soon as its body has arrived. */
  begin(): void {
    const { method = 'GET', httpVersionMinor } = this.request;
    const { host, hosts } = this.#headers;
    if (hosts > 1 || (hosts === 0 && httpVersionMinor > 0)) {
      this.#refuse(400, 'A request needs one Host header.');
      return;
    }
    const { path } = this.#target;
    const query = path.indexOf('?');
    const found = this.options.routes.find(
      this.#target.host ?? host,
      method,
      query === -1 ? path : path.slice(0, query),
    );
    if (found.kind !== 'found') this.#refuseMiss(found, method);
    else if (this.#headers.contentLength > this.options.bodyLimit) this.#refuseBody();
    else if (this.#headers.hasBody) this.#readBody(found.target, found.params);
    else this.#send(found.target, found.params);
  }

  respond(head: ResponseHead, body: Buffer): void {
    const headers = sendableHeaders(head);
    if (headers === undefined) {
      this.broken('the handler sent headers that HTTP does not allow');
      return;
    }
    const { response } = this;
    const { status } = head;
    const lines = [...headers, 'X-Request-Id', this.#requestId];
    if (status === 204 || status === 304) {
      response.writeHead(status, lines).end();
    } else {
      lines.push('Content-Length', String(body.length));
      response.writeHead(status, lines);
      // For HEAD, Node keeps the length and leaves the body out.
      if (body.length <= SMALL_BODY_BYTES) response.end(body.toString('latin1'), 'latin1');
      else response.end(Buffer.from(body));
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
    this.#fail(504, `The handler did not answer within ${this.options.requestTimeoutMs} ms.`);
  }

  unsent(): void {
    this.#endpoint?.dispatch(this);
  }

  unavailable(): void {
    this.#fail(503, 'The handler of this endpoint is not running.', ['Retry-After', RETRY_AFTER_SECONDS]);
  }

  #send(endpoint: FrontEndpoint, params: RequestHead['params']): void {
    const { request, options } = this;
    const head: RequestHead = {
      method: request.method ?? 'GET',
      target: this.#target.path,
      headers: request.rawHeaders,
      params,
      client_ip: request.socket.remoteAddress ?? '',
      request_id: this.#requestId,
      deadline_ms: options.requestTimeoutMs,
    };
    this.head = JSON.stringify(head);
    this.deadline = performance.now() + options.requestTimeoutMs;
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
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length <= this.options.bodyLimit) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      request.off('end', onEnd);
      this.#refuseBody();
    };
    const onEnd = () => {
      this.body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length);
      this.#send(endpoint, params);
    };
    request.on('data', onData);
    request.on('end', onEnd);
    // The client went away in the middle of its body: nobody is left to answer.
    request.on('error', () => undefined);
  }

  #refuseMiss(miss: Exclude<Lookup<FrontEndpoint>, { kind: 'found' }>, method: string): void {
    if (miss.kind === 'malformed') this.#refuse(400, 'The path of the request is not a valid path.');
    else if (miss.kind === 'unknown') this.#refuse(404, 'There is no endpoint at this address.');
    else this.#refuse(405, `This address does not answer ${method}.`, ['Allow', miss.allow.join(', ')]);
  }

  #refuseBody(): void {
    this.#refuse(413, `The body is larger than the ${this.options.bodyLimit} bytes this gateway accepts.`);
  }

  /** Answers a request that goes to no handler. */
  #refuse(status: number, error: string, extra: readonly string[] = []): void {
    this.options.metrics.refused(status);
    if (this.#headers.hasBody) this.#dropBody();
    this.#sendError(status, error, extra);
    if (!this.#headers.hasBody) this.response.end();
  }

  /**
   * Reads what is left of the body, for a while, and only then ends the response, which closes the connection. A client
   * that is still sending when its connection is closed would see a failure instead of the answer.
   */
  #dropBody(): void {
    const { request, response } = this;
    response.shouldKeepAlive = false;
    const latest = performance.now() + LINGER_MS;
    const idle = setTimeout(() => response.end(), LINGER_IDLE_MS);
    const end = () => {
      clearTimeout(idle);
      response.end();
    };
    request.on('data', () => {
      if (performance.now() < latest) idle.refresh();
    });
    request.once('end', end).once('close', end);
    request.resume();
  }

  /** Answers a request in the place of its handler. */
  #fail(status: number, error: string, extra: readonly string[] = []): void {
    this.#sendError(status, error, extra);
    this.response.end();
    this.#finish(status);
  }

  #sendError(status: number, error: string, extra: readonly string[]): void {
    const body = JSON.stringify({ error });
    const lines = ['Content-Type', 'application/json', 'X-Request-Id', this.#requestId, ...extra];
    lines.push('Content-Length', String(Buffer.byteLength(body)));
    this.response.writeHead(status, lines).write(body);
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
