/**
 * The internal server of the actor host for the process `web`: connection tests and files of object storages. Its
 * clients are `client.ts`, and, for files that the process of a service serves, the actor host.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { toError } from '../errors.js';
import { bearerCheck } from '../internal/serve.js';
import type { ConnectionTest } from '../model/connection-test.js';
import type { Log } from '../util/log.js';
import type { ObjectFiles } from './driver.js';
import { type ForwardAddress, forwardRequest } from './forward-request.js';
import { ServiceError, type ServiceErrorKind } from './service-error.js';
import { planAnswer } from './web-server-range.js';

/** The part of the actor host that the server uses. */
export interface ActorHostView {
  /**
   * @param owner whose turn it takes
   * @returns undefined when there is no such service
   */
  testService(id: string, owner: string): Promise<ConnectionTest | undefined>;
  /**
   * The files of a service, or of the object storage that has been active longest; or where another process of this
   * machine serves them.
   * @throws ServiceError when there is none or it is not active
   */
  objectFiles(serviceId: string | undefined): { readonly files: ObjectFiles } | RemoteFiles;
}

/** Files that another process serves, in the same way. */
export interface RemoteFiles {
  /** Rejects with a ServiceError. */
  address(): Promise<ForwardAddress>;
}

export interface WebServerOptions {
  readonly log: Log;
  /** Bearer tokens, of which every request has one. */
  readonly tokens: readonly string[];
  /** Idle timeout of a transfer, milliseconds; two minutes by default. */
  readonly idleLimitMs?: number;
}

/** The body of an error response. */
export interface WebFailure {
  readonly kind: ServiceErrorKind | 'not_found';
  readonly message: string;
}

const IDLE_LIMIT_MS = 120_000;

type Transfer = (
  files: ObjectFiles,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
) => Promise<void>;
type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void>;

/** Creates the server; it does not listen yet. */
export function createWebServer(
  host: ActorHostView,
  { log, tokens, idleLimitMs = IDLE_LIMIT_MS }: WebServerOptions,
): Server {
  const isAllowed = bearerCheck(tokens);
  const handlerOf = routesOf(host, idleLimitMs);
  const server = createServer(
    {
      keepAliveTimeout: 75_000,
      headersTimeout: 20_000,
      // None, because transfers may be of any size and speed; the idle timeout applies.
      requestTimeout: 0,
    },
    (request, response) => {
      const serve = async () => {
        if (!isAllowed(request)) throw new ServiceError('unauthenticated', 'the token is missing or wrong');
        const url = parseTarget(request.url ?? '');
        await handlerOf(request.method ?? '', url.pathname)(request, response, url);
      };
      serve().catch((thrown: unknown) => {
        const error = toError(thrown);
        log[thrown instanceof ServiceError ? 'info' : 'warn'](
          { err: error, method: request.method },
          'request of the management API failed',
        );
        // Aborts the response, so that the client sees that it is incomplete.
        if (response.headersSent) response.destroy();
        else answerFailure(request, response, error);
      });
    },
  );
  return server;
}

function routesOf(host: ActorHostView, idleLimitMs: number): (method: string, path: string) => Handler {
  const withFiles =
    (use: Transfer): Handler =>
    async (request, response, url) => {
      const source = host.objectFiles(url.searchParams.get('service') ?? undefined);
      if ('address' in source) await forwardRequest(request, response, await source.address());
      else await use(source.files, request, response, url);
    };
  /** Aborts a stalled transfer, so that it does not occupy a connection of the storage. */
  const limited =
    (transfer: Handler): Handler =>
    (request, response, url) => {
      response.setTimeout(idleLimitMs, () => response.destroy());
      return transfer(request, response, url);
    };
  const content: Readonly<Record<string, Handler>> = {
    GET: limited(withFiles(sendObject)),
    HEAD: limited(withFiles(sendObject)),
    PUT: limited(withFiles(storeObject)),
    DELETE: withFiles(deleteObject),
  };
  return (method, path) => {
    const [, serviceId] = /^\/services\/([^/]+)\/test$/.exec(path) ?? [];
    if (method === 'POST' && serviceId !== undefined) {
      return (_request, response, url) =>
        testService(host, response, serviceId, url.searchParams.get('owner') ?? '');
    }
    if (method === 'GET' && path === '/objects/address')
      return (_request, response, url) => sendAddress(host, response, url);
    if (method === 'GET' && path === '/objects') return withFiles(listObjects);
    return (path === '/objects/content' && content[method]) || unknownRoute;
  };
}

async function testService(
  host: ActorHostView,
  response: ServerResponse,
  id: string,
  owner: string,
): Promise<void> {
  const tested = await host.testService(id, owner);
  if (tested) answerJson(response, 200, tested);
  else answerJson(response, 404, { kind: 'not_found', message: `There is no service ${id}` });
}

/** Where a process of this machine serves the files itself; empty when they are served here. */
async function sendAddress(host: ActorHostView, response: ServerResponse, url: URL): Promise<void> {
  const source = host.objectFiles(url.searchParams.get('service') ?? undefined);
  answerJson(response, 200, 'address' in source ? await source.address() : {});
}

const listObjects: Transfer = async (files, _request, response, url) => {
  const objects = await files.list(url.searchParams.get('prefix') ?? '');
  answerJson(response, 200, {
    bucket: files.bucket,
    objects: objects.map(({ key, size, last_modified }) => ({ key, size, last_modified })),
  });
};

const sendObject: Transfer = async (files, request, response, url) => {
  const key = requireParameter(url, 'key');
  const object = await files.head(key);
  if (!object) {
    const message = `There is no object "${key}" in the bucket "${files.bucket}"`;
    return answerJson(response, 404, { kind: 'not_found', message });
  }
  const { status, headers, bytes } = planAnswer(object, request.headers);
  if (!bytes || request.method === 'HEAD') {
    response.writeHead(status, headers).end();
    return;
  }
  // The headers describe the object with this etag.
  const content = await files.read(key, bytes, object.etag);
  response.writeHead(status, headers);
  await pipeline(content, response);
};

const storeObject: Transfer = async (files, request, response, url) => {
  const key = requireParameter(url, 'key');
  const size = Number(request.headers['content-length'] ?? Number.NaN);
  if (!Number.isSafeInteger(size)) throw new ServiceError('invalid', 'the Content-Length is missing');
  const type = url.searchParams.get('type') ?? 'application/octet-stream';
  const { etag } = await files.write(key, request, size, type);
  answerJson(response, 200, { bucket: files.bucket, etag });
};

const deleteObject: Transfer = async (files, _request, response, url) => {
  const deleted = await files.delete(requireParameter(url, 'key'));
  answerJson(response, 200, { bucket: files.bucket, deleted });
};

async function unknownRoute(request: IncomingMessage, _response: ServerResponse, url: URL): Promise<void> {
  throw new ServiceError('invalid', `there is no ${request.method} ${url.pathname}`);
}

/** @throws ServiceError when it is invalid */
function parseTarget(target: string): URL {
  const text = `http://actor-host${target}`;
  if (!target.startsWith('/') || !URL.canParse(text))
    throw new ServiceError('invalid', 'the target is no path');
  return new URL(text);
}

function requireParameter(url: URL, name: string): string {
  const value = url.searchParams.get(name);
  if (!value) throw new ServiceError('invalid', `the parameter ${name} is missing`);
  return value;
}

const STATUSES: Readonly<Record<ServiceErrorKind, number>> = {
  unauthenticated: 401,
  invalid: 400,
  unbound: 404,
  inactive: 503,
  busy: 503,
  unavailable: 502,
  backend: 502,
  deadline: 504,
};

function answerFailure(request: IncomingMessage, response: ServerResponse, error: Error): void {
  const kind = error instanceof ServiceError ? error.kind : 'backend';
  // The rest of an upload is discarded.
  if (!request.complete) request.resume();
  answerJson(response, STATUSES[kind], { kind, message: error.message } satisfies WebFailure);
}

function answerJson(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}
