/** Requests that the gateway itself sends to a handler: to try a version, and as work for later. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { AppError } from '../errors.js';
import { DOT_SEGMENT, matchesRoute } from './route-pattern.js';

/** What a user may say about such a request. */
export interface RequestInput {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text; anything else is sent as JSON. */
  readonly body?: unknown;
  readonly body_base64?: string;
}

/** A request that can be sent. */
export interface HandlerRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const MAX_HEADERS = 90;
/** Most characters of all headers: with the longest path and what the gateway adds, less than it accepts of a head. */
const MAX_HEAD_CHARACTERS = 7 * 1024;
/** The gateway writes these itself. */
const OWN_HEADERS = new Set([
  ...['connection', 'content-length', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
]);

/**
 * Completes a request with the method and the route of its endpoint.
 * @param maxBytes of its body
 * @throws AppError invalid_input, which names the member
 */
export function toHandlerRequest(
  { method, route }: { readonly method: string; readonly route: string },
  input: RequestInput,
  maxBytes: number,
): HandlerRequest {
  const body = bodyOf(input);
  if (body.length > maxBytes) {
    const setting = 'GATEWAY_BODY_LIMIT_BYTES';
    throw invalid('body', `has ${body.length} bytes; at most ${maxBytes} are accepted (${setting})`);
  }
  const isJson = input.body !== undefined && typeof input.body !== 'string';
  return {
    method: methodOf(method, input.method),
    path: pathOf(route, input.path),
    headers: headersOf(input.headers ?? {}, isJson),
    body,
  };
}

/**
 * The head of a request as HTTP/1.1, with the empty line behind it.
 * @param host for the Host header, unless the request has one
 */
export function headOf(
  { method, path, headers, body }: HandlerRequest,
  host: string,
  requestId: string,
): string {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  if (!names.has('host')) lines.unshift(`Host: ${host}`);
  if (!names.has('x-request-id')) lines.push(`X-Request-Id: ${requestId}`);
  if (body.length > 0) lines.push(`Content-Length: ${body.length}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

function methodOf(own: string, given: string | undefined): string {
  if (given === undefined || given === own || (given === 'HEAD' && own === 'GET')) return given ?? own;
  throw invalid('method', `must be ${own}, the method of the endpoint`);
}

function pathOf(route: string, given: string | undefined): string {
  if (given === undefined) {
    if (!route.includes('{')) return route;
    throw invalid('path', `is required, because the route ${route} has parameters`);
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(given) || given.startsWith('//'))
    throw invalid('path', 'must be a path, not a URL: the request goes to the handler of this endpoint only');
  if (!/^\/[!-"$-~]*$/.test(given))
    throw invalid(
      'path',
      'must begin with "/" and have visible ASCII characters other than "#"; encode others',
    );
  const [path = ''] = given.split('?', 1);
  if (hasDotSegment(path))
    throw invalid(
      'path',
      'must be percent-encoded UTF-8, without "." or ".." between slashes, encoded ones included',
    );
  if (!matchesRoute(route, path)) throw invalid('path', `does not match the route of the endpoint, ${route}`);
  return given;
}

/** No request with such a path is taken (docs/HTTP.md); nor is one that cannot be decoded. */
function hasDotSegment(path: string): boolean {
  try {
    return DOT_SEGMENT.test(decodeURIComponent(path));
  } catch {
    return true;
  }
}

function headersOf(given: Readonly<Record<string, string>>, isJson: boolean): Record<string, string> {
  const headers = Object.entries(given);
  if (headers.length > MAX_HEADERS) throw invalid('headers', `must have at most ${MAX_HEADERS} members`);
  let characters = 0;
  const names = new Set<string>();
  for (const [name, value] of headers) {
    checkHeader(name, value);
    if (names.has(name.toLowerCase())) throw invalid('headers', `has ${JSON.stringify(name)} twice`);
    names.add(name.toLowerCase());
    characters += name.length + value.length;
  }
  if (characters > MAX_HEAD_CHARACTERS)
    throw invalid('headers', `must have at most ${MAX_HEAD_CHARACTERS} characters together`);
  return isJson && !names.has('content-type')
    ? { ...given, 'Content-Type': 'application/json' }
    : { ...given };
}

function checkHeader(name: string, value: string): void {
  const quoted = JSON.stringify(name);
  if (OWN_HEADERS.has(name.toLowerCase()))
    throw invalid('headers', `must not have ${quoted}: the gateway sets it`);
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch (cause) {
    throw invalid('headers', `has ${quoted}, whose name or value HTTP does not allow`, cause);
  }
  // In JSON it is Unicode, on the wire bytes: other characters would arrive as other ones.
  if (name.toLowerCase() === 'host' && !/^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(value))
    throw invalid('headers', `has ${quoted}, whose value is no host`);
  if (name.includes('_')) throw invalid('headers', `has ${quoted}; names must not have "_"`);
  if (/[^\t -~]/.test(value)) throw invalid('headers', `has ${quoted}, whose value is not ASCII`);
}

function bodyOf({ body, body_base64: base64 }: RequestInput): Buffer {
  if (body !== undefined && base64 !== undefined)
    throw invalid('body', 'and body_base64 exclude each other: send one of them');
  if (base64 !== undefined) {
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.toString('base64').replace(/=+$/, '') !== base64.replace(/=+$/, ''))
      throw invalid('body_base64', 'is not base64');
    return bytes;
  }
  if (body === undefined) return Buffer.alloc(0);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function invalid(member: string, problem: string, cause?: unknown): AppError {
  return new AppError('invalid_input', `body.${member}: ${problem}`, {}, { cause });
}
