/** The client of the process `web` for the actor hosts: it finds a live one and sends it requests (`web-server.ts`). */
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, toError } from '../errors.js';
import { addressesOf, type ProcessAddress } from '../internal/addresses.js';
import type { ConnectionTest } from '../model/connection-test.js';
import type { Store } from '../store/database.js';
import type { Logger } from '../util/log.js';
import { parsedInParts } from '../util/pauses.js';
import type { ForwardAddress } from './forward-request.js';
import { RawBodyAgent, takeBody } from './raw-body.js';
import type { WebFailure } from './web-server.js';

export interface ActorHostClientOptions {
  readonly store: Store;
  /** Authenticates the management API. */
  readonly token: string;
  readonly log: Logger;
}

/** Who is asked, and the token it knows. */
interface Server {
  readonly address: ProcessAddress;
  readonly token: string;
}

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string | number | undefined>>;
  /** Called once per attempt. */
  readonly body?: () => Readable;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly content: Readable;
}

/** Longer than the queue timeout of a transfer and the timeouts of backends together. */
const RESPONSE_TIMEOUT_MS = 150_000;

/**
 * Every method rejects with an AppError: no_actor_host, no_object_storage, not_found, invalid_input or backend_failed.
 */
export class ActorHostClient {
  readonly #options: ActorHostClientOptions;
  /** Not limited: the actor hosts limit concurrent transfers. */
  readonly #agent = new RawBodyAgent({ keepAlive: true, maxFreeSockets: 16, scheduling: 'lifo' });

  constructor(options: ActorHostClientOptions) {
    this.#options = options;
  }

  /** Tests the connection of a service. @param owner whose turn it takes */
  async testService(id: string, owner: string): Promise<ConnectionTest> {
    const path = `/services/${encodeURIComponent(id)}/test`;
    return this.#json({ method: 'POST', path, query: { owner } });
  }

  /** All objects with a prefix. Without a service, here and below, the storage that has been active longest is used. */
  async listObjects(
    service: string | undefined,
    prefix: string,
  ): Promise<{ bucket: string; objects: { key: string; size: number; last_modified: string }[] }> {
    return this.#json({ method: 'GET', path: '/objects', query: { service, prefix } });
  }

  /** An object, or a part of it as `Range` and the conditional headers of the request say. */
  async readObject(
    service: string | undefined,
    key: string,
    method: 'GET' | 'HEAD',
    headers: Readonly<Record<string, string | undefined>>,
  ): Promise<{ status: number; headers: Record<string, string>; content: Readable }> {
    const answer = await this.#request({
      method,
      path: '/objects/content',
      query: { service, key },
      headers,
    });
    const kept = ['content-length', 'content-range', 'etag', 'last-modified', 'accept-ranges'].flatMap(
      (name) => {
        const value = answer.headers[name];
        return typeof value === 'string' ? [[name, value] as const] : [];
      },
    );
    return { ...answer, headers: Object.fromEntries(kept) };
  }

  /** Stores an object; `content` creates the stream of its bytes. */
  async writeObject(
    service: string | undefined,
    key: string,
    object: { readonly size: number; readonly type: string; readonly content: () => Readable },
  ): Promise<{ bucket: string }> {
    return this.#json({
      method: 'PUT',
      path: '/objects/content',
      query: { service, key, type: object.type },
      headers: { 'content-length': object.size },
      body: object.content,
    });
  }

  /** Deletes an object if there is one. */
  async deleteObject(
    service: string | undefined,
    key: string,
  ): Promise<{ bucket: string; deleted: boolean }> {
    return this.#json({ method: 'DELETE', path: '/objects/content', query: { service, key } });
  }

  /** Closes all connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #json<T>(exchange: Exchange): Promise<T> {
    // Both sides have the same version, so the shape of the response is known.
    return (await readJson(await this.#request(exchange))) as T;
  }

  /** The response of the first live host that can be reached. */
  async #request(exchange: Exchange): Promise<Answer> {
    const addresses = await addressesOf(this.#options.store, 'actor-host');
    for (const address of addresses) {
      let answer: Answer;
      try {
        answer = await this.#ask(address, exchange);
      } catch (thrown) {
        // Another host would fail as well.
        if (thrown instanceof BodySourceError) throw thrown.cause;
        this.#options.log.warn({ err: toError(thrown) }, 'an actor host cannot be reached');
        continue;
      }
      const { status, content } = answer;
      if (status < 400 || status === 416) return answer;
      if (exchange.method === 'HEAD') {
        // Consumed, although it is empty, so that the connection is free again.
        content.resume();
        throw failureWithoutBody(status);
      }
      throw failure((await readJson(answer)) as WebFailure);
    }
    const message =
      addresses.length === 0
        ? 'No actor host is alive; start the `actor-host` process.'
        : 'No actor host can be reached at the moment; try again';
    throw new AppError('no_actor_host', message);
  }

  /** Asks an actor host, or, for files, the process of this machine that it names: they need not go through both. */
  async #ask(address: ProcessAddress, exchange: Exchange): Promise<Answer> {
    const host = { address, token: this.#options.token };
    const direct = await this.#processOf(host, exchange);
    if (!direct) return this.#send(host, exchange);
    try {
      return await this.#send(direct, exchange);
    } catch (thrown) {
      if (thrown instanceof BodySourceError) throw thrown;
      // The process has ended; the actor host knows why, or has another one.
      this.#options.log.info({ err: toError(thrown) }, 'the process of an object storage cannot be reached');
      return this.#send(host, exchange);
    }
  }

  /** The process that serves the files of an exchange, if there is one on this machine. */
  async #processOf(host: Server, { path, query }: Exchange): Promise<Server | undefined> {
    if (!('socketPath' in host.address) || !path.startsWith('/objects')) return undefined;
    const lookup = { method: 'GET', path: '/objects/address', query: { service: query?.['service'] } };
    const answer = await this.#send(host, lookup);
    const forward = (await readJson(answer)) as Partial<ForwardAddress>;
    // Otherwise the host says what is wrong when it is asked for the files.
    if (answer.status !== 200 || forward.socketPath === undefined || forward.token === undefined)
      return undefined;
    return { address: { socketPath: forward.socketPath }, token: forward.token };
  }

  async #send(server: Server, exchange: Exchange): Promise<Answer> {
    try {
      return await this.#exchange(server, exchange);
    } catch (thrown) {
      // The host closed a keep-alive connection just when it was reused; the request was not processed.
      if (thrown instanceof StaleConnection) return this.#exchange(server, exchange);
      throw thrown;
    }
  }

  #exchange(
    { address, token }: Server,
    { method, path, query = {}, headers, body }: Exchange,
  ): Promise<Answer> {
    const parameters = Object.entries(query).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest = httpRequest({
        ...address,
        agent: this.#agent,
        method,
        path: `${path}?${new URLSearchParams(parameters)}`,
        headers: {
          ...Object.fromEntries(Object.entries(headers ?? {}).filter(([, value]) => value !== undefined)),
          authorization: `Bearer ${token}`,
        },
      });
      outgoing.setTimeout(RESPONSE_TIMEOUT_MS, () => outgoing.destroy(new Error('no answer in time')));
      let isBroken = false;
      outgoing.on('error', (error: Error & { code?: string }) => {
        isBroken = true;
        reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error);
      });
      outgoing.on('response', (response) => {
        outgoing.setTimeout(0);
        const content = method === 'HEAD' ? response : takeBody(response);
        resolve({ status: response.statusCode ?? 500, headers: response.headers, content });
      });
      if (!body) {
        outgoing.end();
        return;
      }
      const source = body();
      source.on('error', (cause) => {
        if (!isBroken) reject(new BodySourceError('the content cannot be read', { cause }));
      });
      // Both streams report their errors themselves.
      pipeline(source, outgoing).catch(() => undefined);
    });
  }
}

async function readJson({ content }: Answer): Promise<unknown> {
  try {
    return await parsedInParts(content);
  } catch (thrown) {
    throw new AppError(
      'no_actor_host',
      'The actor host aborted its answer; try again',
      {},
      { cause: thrown },
    );
  }
}

/** The body of the request could not be read. */
class BodySourceError extends Error {
  override readonly name = 'BodySourceError';
}

class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
}

function failure({ kind, message }: WebFailure): AppError {
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  switch (kind) {
    case 'not_found':
      return new AppError('not_found', sentence);
    case 'inactive':
      return new AppError('no_object_storage', sentence);
    case 'invalid':
      return new AppError('invalid_input', sentence);
    case 'unauthenticated':
      return new AppError('no_actor_host', 'The actor host does not know this process: SECRET_KEY differs.');
    default:
      return new AppError('backend_failed', sentence);
  }
}

function failureWithoutBody(status: number): AppError {
  if (status === 404) return new AppError('not_found', 'There is no such object');
  if (status === 503) return new AppError('no_object_storage', 'No object storage is active');
  return new AppError('backend_failed', `The actor host answered with status ${status}`);
}
