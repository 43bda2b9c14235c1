/** A bucket on an S3 server: signed requests over a bounded number of kept connections, and what their failures mean. */
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Client, type ClientOptions, S3Error } from 'minio';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import { errorCode, networkReason, unavailable } from '../connect-errors.js';
import { RawBodyAgent, takeBody } from '../raw-body.js';
import { ServiceError } from '../service-error.js';
import { decodeEntities } from './objstore-list.js';

/** A request of the bucket, or of one of its objects. */
export interface BucketRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly key?: string;
  /** Escaped already. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: Buffer;
  /** Statuses that are no failure; 200 and 204 unless given. */
  readonly expected?: readonly number[];
}

/** How the requests of one client go out. */
interface Exchange {
  readonly signal?: AbortSignal | undefined;
  readonly agent?: Agent | undefined;
  /** Called while the answer is emitted. */
  readonly onAnswer?: (response: IncomingMessage) => void;
}

/** A server that says nothing for this long is given up; calls of handlers have shorter deadlines of their own. */
const SILENCE_LIMIT_MS = 120_000;

/** Statuses on which the client library drops the answer without reading it. */
const DROPPED = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

/** What a refusal means for whoever has written the config; by the code of S3. */
const REFUSALS: Readonly<Record<string, (where: string, bucket: string) => string>> = {
  InvalidAccessKeyId: (where) => `the server at ${where} did not accept the access key`,
  /** What versitygw says instead. */
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
  /** For large bodies. Undefined with TLS. */
  readonly #downloads: Agent | undefined;
  readonly #options: ClientOptions;
  #isClosed = false;

  /** @throws ServiceError when the endpoint is none */
  constructor(config: ServiceConfig<'objstore'>, maxConnections: number) {
    const { hostname, port } = endpointOf(config);
    const agentOptions = { keepAlive: true, maxSockets: maxConnections, scheduling: 'lifo' } as const;
    this.name = config.bucket;
    this.where = `${hostname}:${port}`;
    this.#agent = config.use_ssl
      ? new HttpsAgent({ ...agentOptions, ...(config.ssl_root_cert && { ca: config.ssl_root_cert }) })
      : new Agent(agentOptions);
    this.#downloads = config.use_ssl ? undefined : new RawBodyAgent({ ...agentOptions, maxFreeSockets: 4 });
    this.#options = {
      endPoint: hostname.replace(/^\[|\]$/g, ''),
      port,
      useSSL: config.use_ssl,
      region: config.region ?? 'us-east-1',
      accessKey: config.access_key,
      secretKey: config.secret_key,
      pathStyle: true,
      transportAgent: this.#agent,
      // The actor decides what happens after a failure.
      retryOptions: { disableRetry: true },
    };
  }

  /**
   * Sends a request and resolves with the answer, whose body is still to be read.
   * @throws ServiceError
   */
  send(request: BucketRequest, signal?: AbortSignal): Promise<IncomingMessage> {
    return this.#send(request, { signal });
  }

  /**
   * Like `send`, for a large body.
   * @throws ServiceError
   */
  async download(request: BucketRequest): Promise<{ headers: IncomingHttpHeaders; content: Readable }> {
    const { expected = [200] } = request;
    let content: Readable | undefined;
    const { headers } = await this.#send(
      { ...request, expected },
      {
        agent: this.#downloads,
        onAnswer: (response) => {
          // The client library reads what failures say.
          if (expected.includes(response.statusCode ?? 0)) content = takeBody(response);
        },
      },
    );
    if (!content) throw new Error('An answer with another status passed for one that was expected');
    return { headers, content };
  }

  async #send(request: BucketRequest, way: Exchange): Promise<IncomingMessage> {
    const { method, key, query, headers, payload, expected = [200, 204] } = request;
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
        way,
      );
    try {
      return await exchange();
    } catch (thrown) {
      // The server has closed a kept connection at the moment it was used again. All of these requests may be repeated.
      if (thrown instanceof ServiceError && isStale(thrown.cause)) return exchange();
      throw thrown;
    }
  }

  /** Like `send`, when only the headers of the answer matter. The connection is free again afterwards. */
  async sendForHeaders(request: BucketRequest, signal?: AbortSignal): Promise<IncomingHttpHeaders> {
    const response = await this.send(request, signal);
    await this.use(() => finished(response.resume()));
    return response.headers;
  }

  /**
   * Uses the client library; the signal breaks off what it does.
   * @throws ServiceError
   */
  async use<T>(work: (client: Client) => Promise<T>, way: Exchange = {}): Promise<T> {
    if (this.#isClosed) throw new ServiceError('unavailable', `the connection to ${this.where} is closed`);
    try {
      return await work(this.#client(way));
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }

  /** Breaks off everything. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
    this.#downloads?.destroy();
  }

  /** The error of a bucket that cannot be used, in the words of who has to make it usable. */
  connectFailure(thrown: unknown): ServiceError {
    const cause = thrown instanceof ServiceError && thrown.cause !== undefined ? thrown.cause : thrown;
    const code = errorCode(cause) ?? '';
    if (cause instanceof S3Error) {
      const refusal = REFUSALS[code]?.(this.where, this.name);
      const reason = refusal ?? `the server at ${this.where} refused: ${describe(cause)}`;
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

  /** One client per request: only so can each have a signal. They share the connections. */
  #client({ signal, agent = this.#agent, onAnswer }: Exchange): Client {
    const request = this.#options.useSSL ? httpsRequest : httpRequest;
    return new Client({
      ...this.#options,
      transport: {
        request: (options: object, onResponse: (response: IncomingMessage) => void) =>
          watch(
            request({ ...options, agent, ...(signal && { signal }) }, (response) => {
              onAnswer?.(response);
              onResponse(response);
            }),
          ),
      } as NonNullable<ClientOptions['transport']>,
    });
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
    // All that is left are failures of the network, and of requests that were broken off.
    return unavailable(cause, this.where, networkReason(cause, this.where));
  }
}

/** Whether a failure says that there is no such object. */
export function isMissing(thrown: unknown): boolean {
  if (!(thrown instanceof ServiceError)) return false;
  return ['NoSuchKey', 'NotFound'].includes(errorCode(thrown.cause) ?? '');
}

/** Whether a failure says that the object is not the one with the etag that was asked for. */
export function isReplaced(thrown: unknown): boolean {
  return thrown instanceof ServiceError && errorCode(thrown.cause) === 'PreconditionFailed';
}

/** Errors of kept connections that turned out to be closed. */
const stale = new WeakSet<object>();

function isStale(thrown: unknown): boolean {
  return (
    thrown instanceof Error && stale.has(thrown) && ['ECONNRESET', 'EPIPE'].includes(errorCode(thrown) ?? '')
  );
}

/** Ends requests that get no answer, and reads what nobody else does, so that the connection is free again. */
function watch(outgoing: ClientRequest): ClientRequest {
  outgoing.setTimeout(SILENCE_LIMIT_MS, () => {
    outgoing.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }));
  });
  let isAnswered = false;
  outgoing.on('error', (error) => {
    if (outgoing.reusedSocket && !isAnswered) stale.add(error);
  });
  outgoing.on('response', (response) => {
    isAnswered = true;
    // From here on, whoever reads may be slow.
    outgoing.setTimeout(0);
    if (DROPPED.has(response.statusCode ?? 0)) response.resume();
  });
  return outgoing;
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
