/** What the process `web` has of the actor hosts: it finds a live one and asks it (`web-server.ts` answers). */
import { access } from 'node:fs/promises';
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import type { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { AppError, toError } from '../errors.js';
import type { Logger } from '../log.js';
import { presentNodes } from '../reconcile/present-nodes.js';
import type { Store } from '../store/database.js';
import type { ConnectionTest } from './open-connection.js';
import { RawBodyAgent, takeBody } from './raw-body.js';
import type { WebFailure } from './web-server.js';

export interface ActorHostClientOptions {
  readonly store: Store;
  /** Proves that it is the management API that asks. */
  readonly token: string;
  readonly log: Logger;
}

/** Where an actor host is reached. */
type Address = { readonly socketPath: string } | { readonly hostname: string; readonly port: string };

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string | number | undefined>>;
  /** Called once per try. */
  readonly body?: () => Readable;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly content: Readable;
}

/** Longer than any turn a transfer waits for, and any silence of a backend. */
const ANSWER_LIMIT_MS = 150_000;

/** Every method rejects with an AppError: no_actor_host, no_object_storage, not_found, invalid_input or backend_failed. */
export class ActorHostClient {
  /** As many connections as there are requests: the actor hosts decide how many transfers run at once. */
  readonly #agent = new RawBodyAgent({ keepAlive: true, maxFreeSockets: 16, scheduling: 'lifo' });

  constructor(private readonly options: ActorHostClientOptions) {}

  async testService(id: string): Promise<ConnectionTest> {
    return this.#json({ method: 'POST', path: `/services/${encodeURIComponent(id)}/test` });
  }

  /** All objects with a prefix. Without a service, here and below, the storage is meant that has been active longest. */
  async listObjects(
    service: string | undefined,
    prefix: string,
  ): Promise<{ bucket: string; objects: { key: string; size: number; last_modified: string }[] }> {
    return this.#json({ method: 'GET', path: '/objects', query: { service, prefix } });
  }

  /** An object, or what was asked for of it; the headers of the request say what that is. */
  async readObject(
    service: string | undefined,
    key: string,
    method: 'GET' | 'HEAD',
    headers: Readonly<Record<string, string | undefined>>,
  ): Promise<{ status: number; headers: Record<string, string>; content: Readable }> {
    const answer = await this.#ask({ method, path: '/objects/content', query: { service, key }, headers });
    const kept = ['content-length', 'content-range', 'etag', 'last-modified', 'accept-ranges'].flatMap(
      (name) => {
        const value = answer.headers[name];
        return typeof value === 'string' ? [[name, value] as const] : [];
      },
    );
    return { ...answer, headers: Object.fromEntries(kept) };
  }

  /** Stores an object; `content` makes the stream of its bytes. */
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
    // Both sides are of one version, so the answer has the shape its route gives it.
    return (await readJson(await this.#ask(exchange))) as T;
  }

  /** The first answer that a live host gives. */
  async #ask(exchange: Exchange): Promise<Answer> {
    const addresses = await this.#addresses();
    for (const address of addresses) {
      let answer: Answer;
      try {
        answer = await this.#send(address, exchange);
      } catch (thrown) {
        // No other host could do better.
        if (thrown instanceof SourceFailure) throw thrown.cause;
        this.options.log.warn({ err: toError(thrown) }, 'an actor host cannot be reached');
        continue;
      }
      if (answer.status < 400 || answer.status === 416) return answer;
      if (exchange.method === 'HEAD') {
        // There is no body that could say more; the connection is free when it has been read all the same.
        answer.content.resume();
        throw failureWithoutBody(answer.status);
      }
      throw failure((await readJson(answer)) as WebFailure);
    }
    const message =
      addresses.length === 0
        ? 'No actor host is alive; start the `actor-host` process.'
        : 'No actor host can be reached at the moment; try again';
    throw new AppError('no_actor_host', message);
  }

  /** Those of this machine first: their sockets need no way through the network. */
  async #addresses(): Promise<Address[]> {
    const here: Address[] = [];
    const elsewhere: Address[] = [];
    for (const node of await presentNodes(this.options.store, 'actor-host')) {
      const { socket, url } = node.info;
      if (node.hostname === hostname() && typeof socket === 'string' && (await exists(socket))) {
        here.push({ socketPath: socket });
      } else if (typeof url === 'string') {
        const { hostname: host, port } = new URL(url);
        elsewhere.push({ hostname: host.replace(/^\[|\]$/g, ''), port });
      }
    }
    return [...here, ...elsewhere];
  }

  async #send(address: Address, exchange: Exchange): Promise<Answer> {
    try {
      return await this.#exchange(address, exchange);
    } catch (thrown) {
      // The host has closed a kept connection at the moment it was used again; nothing was done yet.
      if (thrown instanceof StaleConnection) return this.#exchange(address, exchange);
      throw thrown;
    }
  }

  #exchange(address: Address, { method, path, query = {}, headers, body }: Exchange): Promise<Answer> {
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
          authorization: `Bearer ${this.options.token}`,
        },
      });
      outgoing.setTimeout(ANSWER_LIMIT_MS, () => outgoing.destroy(new Error('no answer in time')));
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
        if (!isBroken) reject(new SourceFailure('the content cannot be read', { cause }));
      });
      // Both ends tell by themselves what went wrong.
      pipeline(source, outgoing).catch(() => undefined);
    });
  }
}

async function readJson({ content }: Answer): Promise<unknown> {
  try {
    return await json(content);
  } catch (thrown) {
    throw new AppError(
      'no_actor_host',
      'The actor host broke off its answer; try again',
      {},
      { cause: thrown },
    );
  }
}

/** What was to be sent could not be read. */
class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
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

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
