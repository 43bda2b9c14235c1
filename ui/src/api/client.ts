/** Requests to the management API, with the types of its routes. The cookie of the session goes with each. */
import type { Routes } from '../generated/routes.js';

export type RouteName = keyof Routes;
export type Data<K extends RouteName> = Routes[K]['data'];

/** The parts of a request that its route has. */
export type Input<K extends RouteName> = Parts<'params', Routes[K]['params']> &
  Parts<'query', Routes[K]['query']> &
  (Routes[K]['body'] extends undefined ? object : { readonly body?: Routes[K]['body'] });
type Parts<Name extends string, Value> = keyof Value extends never
  ? object
  : { readonly [name in Name]?: Value };

/** A success of the API. */
export interface Answer<T> {
  readonly data: T;
  readonly warnings: readonly string[];
  /** The query of the next page of a list. */
  readonly next: string | undefined;
}

/** A message of the compiler. */
export type { Diagnostic } from '../generated/routes.js';

type DiagnosticLike = import('../generated/routes.js').Diagnostic;

/** What the API says of a request that it refuses; or that there was no answer (`unreachable`). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly status: number,
    readonly requestId: string | undefined,
    readonly details: unknown,
    readonly diagnostics: readonly DiagnosticLike[],
  ) {
    super(message);
  }
}

interface AnyInput {
  readonly params?: object;
  readonly query?: object;
  readonly body?: unknown;
}

interface Envelope {
  readonly data?: unknown;
  readonly warnings?: readonly string[];
  readonly error?: string;
  readonly code?: string;
  readonly details?: unknown;
  readonly diagnostics?: readonly DiagnosticLike[];
}

/** Called when the API no longer knows who sends requests. */
let onSignedOut: () => void = () => undefined;
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

/** The number of the session: another one each time that somebody has signed in, here or in another tab. */
let sessionNumber = 0;
export function beginSession(): void {
  sessionNumber++;
}

/** Tells an answer apart that belongs to an earlier session, and says nothing of the one that has begun since. */
export function sessionNow(): { isSame(): boolean } {
  const number = sessionNumber;
  return { isSame: () => sessionNumber === number };
}

/** Called when a request has changed something. */
let onChanged: () => void = () => undefined;
export function whenChanged(callback: () => void): void {
  onChanged = callback;
}

/** Called when there was no answer. */
let onUnreachable: () => void = () => undefined;
export function whenUnreachable(callback: () => void): void {
  onUnreachable = callback;
}

/** While it is known that nobody is signed in, nothing is read: it would be refused, and every refusal is audited. */
let isPaused = false;
export const isReadingPaused = () => isPaused;
export function pauseReading(isNow: boolean): void {
  isPaused = isNow;
}

/** Sends a request. @throws ApiError */
export async function call<K extends RouteName>(
  route: K,
  input?: Input<K>,
  signal?: AbortSignal,
): Promise<Answer<Data<K>>> {
  const { method, path } = target(route, input);
  const { body } = (input ?? {}) as AnyInput;
  return send(method, path, body, signal && { signal }) as Promise<Answer<Data<K>>>;
}

/** A file that a route answers with where that is asked for. @throws ApiError */
export async function getFile<K extends RouteName & `GET ${string}`>(
  route: K,
  input: Input<K>,
  type: string,
): Promise<Blob> {
  const { path } = target(route, input);
  const response = await fetch(path, { headers: { accept: type } }).catch(unreachable());
  if (response.ok) return response.blob().catch(unreachable());
  const text = await response.text().catch(unreachable());
  // A refusal is thrown.
  return answerOf(path, response.status, (name) => response.headers.get(name), text) as never;
}

/** What to do when there is no answer, or not all of it. */
const unreachable =
  (signal?: AbortSignal) =>
  (thrown: unknown): never => {
    if (signal?.aborted) throw thrown;
    onUnreachable();
    throw new ApiError('The gateway cannot be reached.', 'unreachable', 0, undefined, undefined, []);
  };

/** The data of an answer. @throws ApiError */
export async function get<K extends RouteName>(route: K, input?: Input<K>): Promise<Data<K>> {
  return (await call(route, input)).data;
}

/**
 * Method and path, with the query, of a request.
 * @throws ApiError when a browser would send it somewhere else: it resolves `.` and `..` in paths, however they are
 * written
 */
export function target(route: RouteName, input: object | undefined): { method: string; path: string } {
  const { params = {}, query = {} } = (input ?? {}) as AnyInput;
  const [method = '', pattern = ''] = route.split(' ', 2);
  const values = new Map<string, unknown>(Object.entries(params));
  const path = pattern.replace(/\{(\w+)(\.\.\.)?\}/g, (_, name: string, isRest?: string) => {
    const text = String(values.get(name));
    const segments = isRest ? text.split('/') : [text];
    if (segments.some((segment) => segment === '.' || segment === '..'))
      throw new ApiError(`${name}: a browser cannot ask for “${text}”`, 'unsendable', 0, undefined, {}, []);
    return segments.map(encodeURIComponent).join('/');
  });
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return { method, path: given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path };
}

/** Says who one is, also to those who are not signed in. */
const SESSION_PATH = '/api/session';

interface SendOptions {
  readonly signal?: AbortSignal;
  /** Instead of the session. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request to a path, such as that of the next page. @throws ApiError */
export async function send(
  method: string,
  path: string,
  body?: unknown,
  { signal, key, headers }: SendOptions = {},
): Promise<Answer<unknown>> {
  if (isPaused && method === 'GET' && path !== SESSION_PATH)
    throw new ApiError('Sign in to see this.', 'unauthorized', 401, undefined, undefined, []);
  const isForm = body instanceof FormData;
  const session = sessionNow();
  const response = await fetch(path, {
    method,
    headers: {
      accept: 'application/json',
      ...headers,
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch(unreachable(signal));
  // It may be given up, or cut off, while its body arrives.
  const text = await response.text().catch(unreachable(signal));
  const header = (name: string) => response.headers.get(name);
  const answer = answerOf(path, response.status, header, text, session.isSame());
  if (method !== 'GET') onChanged();
  return answer;
}

/**
 * The answer of a response, however it was requested.
 * @param isOfSession whether it was requested in the session of now
 * @throws ApiError for a refusal
 */
export function answerOf(
  path: string,
  status: number,
  header: (name: string) => string | null,
  text: string,
  isOfSession = true,
): Answer<unknown> {
  const isSuccess = status >= 200 && status < 300;
  const content = parsed(text);
  if (isSuccess && content === undefined)
    throw failure(status, header('x-request-id') ?? undefined, {
      error: 'The answer of the gateway is cut off.',
    });
  const isObject = typeof content === 'object' && content !== null && !Array.isArray(content);
  const envelope: Envelope = isObject ? content : {};
  if (!isSuccess) {
    // A password that is wrong is no session that has ended.
    const isEnd = status === 401 && envelope.code !== 'login_failed' && path !== SESSION_PATH;
    if (isEnd && isOfSession) onSignedOut();
    throw failure(status, header('x-request-id') ?? undefined, envelope);
  }
  const [, next] = /<([^>]+)>; rel="next"/.exec(header('link') ?? '') ?? [];
  // Some routes answer without an envelope.
  const isBare = !('ok' in envelope) && !('success' in envelope);
  return { data: isBare ? content : envelope.data, warnings: envelope.warnings ?? [], next };
}

/** Undefined: it is no JSON. Some successes have no content. */
function parsed(text: string): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failure(status: number, requestId: string | undefined, envelope: Envelope): ApiError {
  const { error = `The gateway answers ${status}.`, code = 'unexpected' } = envelope;
  return new ApiError(error, code, status, requestId, envelope.details, envelope.diagnostics ?? []);
}
