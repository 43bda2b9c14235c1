/** Requests to the management API. Their types are those of the routes. */
import { CliError, hintFor, InterruptError, signInHint } from './errors.js';
import type { Routes } from './generated/routes.js';
import { send } from './http.js';
import { type ServerEvent, serverEvents } from './server-events.js';

/** The code of the error when an answer that goes on for long has broken off. */
export const CONNECTION_LOST = 'connection_lost';

export type RouteName = keyof Routes;

/** The parts of a request that its route has. */
export type Input<K extends RouteName> = Parts<'params', Routes[K]['params']> &
  Parts<'query', Routes[K]['query']> &
  (Routes[K]['body'] extends undefined ? object : { readonly body?: Routes[K]['body'] }) & {
    readonly headers?: Readonly<Record<string, string>>;
  };
type Parts<Name extends string, Value> = keyof Value extends never
  ? object
  : { readonly [name in Name]?: Value };

/** A success of the API. */
export interface Answer<Data> {
  readonly data: Data;
  readonly warnings: readonly string[];
  readonly status: number;
  /** Path and query of the next page of a list. */
  readonly next: string | undefined;
}

interface AnyInput {
  readonly params?: object | undefined;
  readonly query?: object | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

interface Envelope {
  readonly ok?: boolean;
  readonly success?: boolean;
  readonly data?: unknown;
  readonly warnings?: readonly string[];
  readonly error?: string;
  readonly code?: string;
  readonly details?: unknown;
  readonly diagnostics?: readonly { readonly level: string; readonly rendered: string }[];
}

export class ApiClient {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #signal: AbortSignal;

  constructor({ url, token }: { readonly url: string; readonly token?: string }, signal: AbortSignal) {
    this.url = url;
    this.#token = token;
    this.#signal = signal;
  }

  /** Sends a request. @throws CliError with what the API says, or why it cannot be reached */
  async call<K extends RouteName>(route: K, input?: Input<K>): Promise<Answer<Routes[K]['data']>> {
    const { method, path } = targetOf(route, input ?? {});
    return this.#answer(method, path, input ?? {}) as Promise<Answer<Routes[K]['data']>>;
  }

  /** The data of an answer. */
  async get<K extends RouteName>(route: K, input?: Input<K>): Promise<Routes[K]['data']> {
    return (await this.call(route, input)).data;
  }

  /** All entries of a list, page by page. */
  async all<K extends RouteName>(
    route: K,
    input?: Input<K>,
  ): Promise<Routes[K]['data'] extends readonly (infer Item)[] ? Item[] : never> {
    const { method, path } = targetOf(route, input ?? {});
    const items: unknown[] = [];
    for (let next: string | undefined = path; next !== undefined; ) {
      const answer: Answer<unknown> = await this.#answer(method, next, {});
      items.push(...(answer.data as unknown[]));
      next = answer.next;
    }
    return items as never;
  }

  /** Server-sent events of a route, until the server ends them. @param last the id of the last event that was seen */
  async *events<K extends RouteName>(
    route: K,
    input: Input<K>,
    last?: string,
  ): AsyncGenerator<ServerEvent, void, void> {
    const { method, path } = targetOf(route, input);
    const headers = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) };
    const response = await this.#send(method, path, { headers });
    if (response.status === 204 || !response.body) return;
    if (!response.ok) throw this.#failure(response, await this.#envelope(response, path));
    try {
      yield* serverEvents(response.body);
    } catch (thrown) {
      if (this.#signal.aborted) throw new InterruptError();
      const { message } = thrown as Error;
      throw new CliError(`The connection to ${this.url} broke off: ${message}`, { code: CONNECTION_LOST });
    }
  }

  async #answer(method: string, path: string, input: AnyInput): Promise<Answer<unknown>> {
    const response = await this.#send(method, path, input);
    const envelope = await this.#envelope(response, path);
    if (!response.ok || (envelope.ok !== true && envelope.success !== true))
      throw this.#failure(response, envelope);
    const { data, warnings = [] } = envelope;
    const [, next] = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
    return { data, warnings, status: response.status, next };
  }

  #send(method: string, path: string, { body, headers = {} }: AnyInput): Promise<Response> {
    const isForm = body instanceof FormData;
    return send(`${this.url}${path}`, {
      method,
      // Followed, it would take the token and the body to another place.
      redirect: 'manual',
      signal: this.#signal,
      headers: {
        accept: 'application/json',
        ...(this.#token !== undefined && { authorization: `Bearer ${latin1(this.#token)}` }),
        ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    });
  }

  #failure(response: Response, envelope: Envelope): CliError {
    const {
      error = `The API answers ${response.status}`,
      code = 'unexpected',
      details,
      diagnostics,
    } = envelope;
    return new CliError(error, {
      code,
      hint: code === 'unauthorized' ? signInHint(this.url, this.#token !== undefined) : hintFor(code),
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? undefined,
      ...(details !== undefined && { details }),
      ...(diagnostics && { diagnostics }),
    });
  }

  async #envelope(response: Response, path: string): Promise<Envelope> {
    const text = await response.text().catch((thrown: unknown) => {
      throw this.#signal.aborted
        ? new InterruptError()
        : new CliError(`The answer of ${this.url} broke off: ${(thrown as Error).message}`, {
            code: 'unreachable',
          });
    });
    try {
      const envelope = JSON.parse(text) as unknown;
      if (typeof envelope === 'object' && envelope !== null && ('ok' in envelope || 'success' in envelope))
        return envelope as Envelope;
    } catch {
      // Not from the API.
    }
    const to = response.headers.get('location');
    throw new CliError(
      to === null
        ? `${this.url} answers ${path} with ${response.status}, and not as a management API: it is no Edge Gateway, or the port of its endpoints`
        : `${this.url} redirects ${path} to ${to}, which is not followed`,
      {
        code: 'not_the_api',
        status: response.status,
        hint: 'The URL is that of the management API, such as http://127.0.0.1:8081.',
      },
    );
  }
}

function targetOf(route: string, { params = {}, query = {} }: AnyInput): { method: string; path: string } {
  const [method = '', pattern = ''] = route.split(' ', 2);
  const values = new Map(Object.entries(params));
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values.get(name))),
  );
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return { method, path: given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path };
}

/** Headers are bytes: a key that has other characters is sent as UTF-8. */
function latin1(token: string): string {
  return Buffer.from(token, 'utf8').toString('latin1');
}
