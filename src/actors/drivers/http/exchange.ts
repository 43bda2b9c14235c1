/** One request and its response, over kept connections whose addresses have been checked. */
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { lookupPublic, PrivateAddressError, requirePublicHost } from '../../../util/public-address.js';
import { errorCode, networkReason, REASONS } from '../../failures.js';
import { ServiceError } from '../../service-error.js';
import { isStale, timedOut, watchRequest } from '../../watched-request.js';

export interface HttpRequest {
  readonly url: URL;
  readonly method: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface HttpAnswer {
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Doing these twice is the same as once (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);
/** Most bytes in the head of a response; Node's own default. */
const MAX_HEAD_BYTES = 16 * 1024;

/** The connections with the servers of a service. */
export class HttpConnections {
  readonly #agent: Agent;
  readonly #config: ServiceConfig<'http'>;
  readonly #answerBytes: number;
  #isClosed = false;

  /** @param answerBytes what the body of one response may have */
  constructor(config: ServiceConfig<'http'>, answerBytes: number) {
    const options = { keepAlive: true, maxSockets: config.pool_size, scheduling: 'lifo' } as const;
    this.#agent = config.base_url.toLowerCase().startsWith('https:')
      ? new HttpsAgent({ ...options, ...(config.ssl_root_cert && { ca: config.ssl_root_cert }) })
      : new Agent(options);
    this.#config = config;
    this.#answerBytes = answerBytes;
  }

  /**
   * Sends a request, and reads the whole response. Redirects are not followed: the handler decides.
   * @throws ServiceError `unavailable` when there is no connection, `backend` when it broke after that
   */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const where = whereOf(request.url);
    if (this.#isClosed) throw new ServiceError('unavailable', REASONS.closedHere(where));
    try {
      if (!this.#config.allow_private_addresses) requirePublicHost(request.url);
      return await this.#sendOnce(request, signal).catch((thrown: unknown) => {
        if (!this.#isClosed && IDEMPOTENT.has(request.method) && isStale(thrown))
          return this.#sendOnce(request, signal);
        throw thrown;
      });
    } catch (thrown) {
      if (this.#isClosed) throw new ServiceError('unavailable', REASONS.closedHere(where), { cause: thrown });
      throw failureOf(thrown, where, signal);
    }
  }

  /** Aborts all requests. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
  }

  #sendOnce({ url, method, headers, body }: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { allow_private_addresses, connect_timeout_seconds, timeout_seconds } = this.#config;
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const options: RequestOptions = {
      method,
      headers: [...headers, 'Host', url.host, ...lengthOf(method, body)],
      agent: this.#agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout_seconds * 1_000)]),
      maxHeaderSize: MAX_HEAD_BYTES,
      ...(!allow_private_addresses && { lookup: lookupPublic }),
    };
    return new Promise((resolve, reject) => {
      const outgoing = watchRequest(request(url, options), timeout_seconds * 1_000);
      limitConnecting(outgoing, url.protocol === 'https:', connect_timeout_seconds * 1_000);
      outgoing.once('error', reject);
      outgoing.once('response', (response) => this.#read(response).then(resolve, reject));
      outgoing.end(body);
    });
  }

  async #read(response: IncomingMessage): Promise<HttpAnswer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      // Leaving the loop ends the response, and its connection.
      if (bytes > this.#answerBytes) {
        const limit = `handlers get at most ${this.#answerBytes} bytes (SERVICE_ANSWER_MB, and at most 64 MiB)`;
        throw new ServiceError('backend', `the body of the response is longer than ${limit}`);
      }
      chunks.push(chunk);
    }
    return { status: response.statusCode ?? 0, headers: response.rawHeaders, body: Buffer.concat(chunks) };
  }
}

/** An error before its request had a connection. */
const unconnected = new WeakSet<object>();

function limitConnecting(outgoing: ClientRequest, isTls: boolean, timeoutMs: number): void {
  outgoing.once('socket', (socket) => {
    if (outgoing.reusedSocket) return;
    const timer = setTimeout(() => outgoing.destroy(timedOut()), timeoutMs);
    const fail = (error: Error) => unconnected.add(error);
    outgoing.once('error', fail);
    socket.once('close', () => clearTimeout(timer));
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      outgoing.off('error', fail);
    });
  });
}

function failureOf(thrown: unknown, where: string, signal: AbortSignal): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const options = { cause: thrown };
  if (thrown instanceof PrivateAddressError) {
    const allow = 'allow_private_addresses in the config of the service allows it';
    return new ServiceError('unavailable', `${where}: ${thrown.message}; ${allow}`, options);
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (signal.aborted || error.name === 'TimeoutError' || error.name === 'AbortError') {
    return new ServiceError(
      'deadline',
      `${where} did not answer in time; what the request did is not known`,
      options,
    );
  }
  if (errorCode(error) === 'HPE_HEADER_OVERFLOW') {
    return new ServiceError('backend', `${where} sends a head of more than ${MAX_HEAD_BYTES} bytes`, options);
  }
  const reason = networkReason(error, where) ?? `${where}: ${error.message}`;
  const kind = unconnected.has(error) ? 'unavailable' : 'backend';
  return new ServiceError(kind, reason, options);
}

/** A server must be told that a request has no body where one would be expected. */
function lengthOf(method: string, body: Buffer): readonly string[] {
  const hasBody = body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method);
  return hasBody ? ['Content-Length', String(body.length)] : [];
}

function whereOf({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}
