/** A bucket on an S3 server: signed requests over a limited number of keep-alive connections, and their errors. */
import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Client, type ClientOptions, S3Error } from 'minio';
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { errorCode, REASONS, unavailable } from '../../failures.js';
import { RawBodyAgent, takeBody } from '../../raw-body.js';
import { ServiceError } from '../../service-error.js';
import { isStale, watchRequest } from '../../watched-request.js';
import { decodeEntities } from './listing.js';

/** A request for the bucket or one of its objects. */
export interface BucketRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly key?: string;
  /** Already escaped. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: Buffer;
  /** Status codes of success. */
  readonly expected?: readonly number[];
}

interface SendOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Status codes of responses whose bodies the caller reads; those of all others are short. */
  readonly read?: readonly number[];
  /** Called with such a response before its body is read. */
  readonly onResponse?: (response: IncomingMessage) => void;
}

/** Status codes of success, unless a request says others. */
const SUCCESS = [200, 204];
/** Timeout of a silent server; calls of handlers have shorter deadlines. */
const IDLE_TIMEOUT_MS = 120_000;

/** What the client library reads, it holds as a whole: errors, and answers to multipart uploads. */
const MAX_SHORT_BYTES = 1024 ** 2;

/** Status codes for which the client library does not read the body. */
const UNREAD_STATUSES = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

/** Reasons of refusals in terms of the config, by S3 error code. */
const REFUSALS: Readonly<Record<string, (where: string, bucket: string) => string>> = {
  InvalidAccessKeyId: (where) => `the server at ${where} did not accept the access key`,
  /** The code of versitygw for the same error. */
  XAdminUserNotFound: (where) => `the server at ${where} did not accept the access key`,
  SignatureDoesNotMatch: (where) => `the server at ${where} did not accept the secret key`,
  AccessDenied: (where, bucket) =>
    `the server at ${where} did not accept the access key and secret key for the bucket "${bucket}"`,
  NoSuchBucket: (_where, bucket) => `the bucket "${bucket}" does not exist`,
};

export class Bucket {
  readonly name: string;
  /** `host:port` */
  readonly where: string;
  readonly #agent: Agent;
  readonly #options: ClientOptions;
  #isClosed = false;

  /** @throws ServiceError when the endpoint is invalid */
  constructor(config: ServiceConfig<'objstore'>, maxConnections: number) {
    const { hostname, port } = endpointOf(config);
    const agentOptions = { keepAlive: true, maxSockets: maxConnections, scheduling: 'lifo' } as const;
    this.name = config.bucket;
    this.where = `${hostname}:${port}`;
    this.#agent = config.use_ssl
      ? new HttpsAgent({ ...agentOptions, ...(config.ssl_root_cert && { ca: config.ssl_root_cert }) })
      : new RawBodyAgent(agentOptions);
    this.#options = {
      endPoint: hostname.replace(/^\[|\]$/g, ''),
      port,
      useSSL: config.use_ssl,
      region: config.region ?? 'us-east-1',
      accessKey: config.access_key,
      secretKey: config.secret_key,
      pathStyle: true,
      transportAgent: this.#agent,
      // The actor handles failures.
      retryOptions: { disableRetry: true },
    };
  }

  /**
   * Sends a request and resolves with the response, whose body the caller must read.
   * @throws ServiceError
   */
  send(request: BucketRequest, signal?: AbortSignal): Promise<IncomingMessage> {
    return this.#send(request, { signal, read: request.expected ?? SUCCESS });
  }

  /**
   * Like `send`, for a body that may be large.
   * @throws ServiceError
   */
  async download(request: BucketRequest): Promise<{ headers: IncomingHttpHeaders; content: Readable }> {
    const { expected = [200] } = request;
    let content: Readable | undefined;
    const onResponse = (response: IncomingMessage) => {
      content = takeBody(response);
    };
    const response = await this.#send({ ...request, expected }, { read: expected, onResponse });
    return { headers: response.headers, content: content ?? response };
  }

  async #send(request: BucketRequest, options: SendOptions): Promise<IncomingMessage> {
    const { method, key, query, headers, payload, expected = SUCCESS } = request;
    const exchange = () =>
      this.use(
        (client) =>
          client.makeRequestAsync(
            {
              method,
              bucketName: this.name,
              ...(key !== undefined && { objectName: key }),
              ...(query !== undefined && { query }),
              headers: { ...headers },
            },
            payload,
            [...expected],
          ),
        options,
      );
    try {
      return await exchange();
    } catch (thrown) {
      // The server closed a keep-alive connection just when it was reused. All these requests are idempotent.
      if (thrown instanceof ServiceError && isStale(thrown.cause)) return exchange();
      throw thrown;
    }
  }

  /** Like `send`, but returns only the headers and consumes the body. */
  async sendForHeaders(request: BucketRequest, signal?: AbortSignal): Promise<IncomingHttpHeaders> {
    const response = await this.#send(request, { signal });
    await this.use(() => finished(response.resume()));
    return response.headers;
  }

  /**
   * Runs work with the client library.
   * @throws ServiceError
   */
  async use<T>(work: (client: Client) => Promise<T>, options: SendOptions = {}): Promise<T> {
    if (this.#isClosed) throw new ServiceError('unavailable', REASONS.closedHere(this.where));
    try {
      return await work(this.#client(options));
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }

  /** Aborts all requests. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
  }

  /** The error of a bucket that cannot be used, in terms of the config. */
  connectFailure(thrown: unknown): ServiceError {
    const cause = thrown instanceof ServiceError && thrown.cause !== undefined ? thrown.cause : thrown;
    const code = errorCode(cause) ?? '';
    if (cause instanceof S3Error) {
      const refusal = REFUSALS[code]?.(this.where, this.name);
      const reason = refusal ?? REASONS.refused(this.where, describe(cause));
      return new ServiceError('unavailable', reason, { cause });
    }
    if (code === 'EPROTO' || code.startsWith('ERR_SSL')) {
      const reason = `the server at ${this.where} does not speak TLS there: does use_ssl belong in the config?`;
      return new ServiceError('unavailable', reason, { cause });
    }
    return cause instanceof ServiceError
      ? new ServiceError('unavailable', cause.message)
      : unavailable(cause, this.where);
  }

  /** One client per request, so that each has its own signal. All share the connections. */
  #client({ signal, read = [], onResponse }: SendOptions): Client {
    const request = this.#options.useSSL ? httpsRequest : httpRequest;
    const send = (options: object, onResult: (response: IncomingMessage) => void) => {
      const outgoing = request({ ...options, agent: this.#agent, ...(signal && { signal }) });
      outgoing.on('response', (response) => {
        if (!read.includes(response.statusCode ?? 0)) this.#limitBody(response);
        else onResponse?.(response);
      });
      return watch(outgoing.on('response', onResult));
    };
    return new Client({
      ...this.#options,
      transport: { request: send } as NonNullable<ClientOptions['transport']>,
    });
  }

  /** Ends a response whose body is longer than it has any reason to be. */
  #limitBody(response: IncomingMessage): void {
    const push = response.push;
    let bytes = 0;
    // The parser hands over the body by calling it.
    response.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      bytes += chunk?.length ?? 0;
      if (bytes <= MAX_SHORT_BYTES) return push.call(response, chunk, encoding);
      const reason = `${this.where} sends more than ${MAX_SHORT_BYTES / 1024 ** 2} MiB with status ${response.statusCode}`;
      response.destroy(new ServiceError('backend', reason));
      return false;
    };
  }

  #failure(thrown: unknown): ServiceError {
    if (thrown instanceof ServiceError) return thrown;
    const cause = toError(thrown);
    if (cause instanceof S3Error) return new ServiceError('backend', describe(cause), { cause });
    const [, status] = /Retryable HTTP status: (\d+)/.exec(cause.message) ?? [];
    if (status !== undefined) {
      const reason = `the server at ${this.where} answered with status ${status}`;
      return new ServiceError('backend', reason, { cause });
    }
    // All other errors are network errors or aborted requests.
    return unavailable(cause, this.where);
  }
}

/** Whether an error means that the object does not exist. */
export function isMissing(thrown: unknown): boolean {
  if (!(thrown instanceof ServiceError)) return false;
  return ['NoSuchKey', 'NotFound'].includes(errorCode(thrown.cause) ?? '');
}

/** Whether an error means that an upload in parts has been completed or aborted. */
export function isGone(thrown: unknown): boolean {
  return thrown instanceof ServiceError && errorCode(thrown.cause) === 'NoSuchUpload';
}

/** Whether an error means that the object has a different etag. */
export function isReplaced(thrown: unknown): boolean {
  return thrown instanceof ServiceError && errorCode(thrown.cause) === 'PreconditionFailed';
}

/** Adds a timeout to a request, and consumes bodies that the library does not read, to free the connection. */
function watch(outgoing: ClientRequest): ClientRequest {
  return watchRequest(outgoing, IDLE_TIMEOUT_MS).on('response', (response) => {
    if (UNREAD_STATUSES.has(response.statusCode ?? 0)) response.resume();
  });
}

function describe(error: S3Error): string {
  const code = errorCode(error);
  const message = decodeEntities(error.message);
  return code === undefined ? message : `${code}: ${message}`;
}

function endpointOf({ endpoint, use_ssl }: ServiceConfig<'objstore'>): { hostname: string; port: number } {
  const text = `${use_ssl ? 'https' : 'http'}://${endpoint}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.pathname !== '/' || url.username || url.search || url.hash || endpoint.endsWith('/')) {
    throw new ServiceError('unavailable', `the endpoint "${endpoint}" is not host:port, without a scheme`);
  }
  return { hostname: url.hostname, port: Number(url.port) || (use_ssl ? 443 : 80) };
}
