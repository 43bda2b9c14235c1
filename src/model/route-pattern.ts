/**
 * Route patterns: `/items/{id}`. Pure; the management API validates and stores with it, the gateway routes with it.
 * A segment is static or one whole `{name}` parameter. Static segments are compared percent-decoded, parameters
 * regardless of their names, and one trailing slash means nothing.
 */

/** One part of a route between two slashes. */
export type Segment =
  /** Matches this text; percent-encoding is already undone, so it may hold any character, a slash included. */
  | { readonly kind: 'static'; readonly value: string }
  /** Matches any one segment that is not empty. */
  | { readonly kind: 'param'; readonly name: string };

/** A route, ready to be matched. The root route `/` has no segments. */
export interface ParsedRoute {
  readonly segments: readonly Segment[];
}

/** A path cannot be a route. The message says why, in words for the person who wrote it. */
export class RouteSyntaxError extends Error {
  override readonly name = 'RouteSyntaxError';
}

/** Longest route, in the form of its key. The unique index on routes has to hold it. */
export const MAX_ROUTE_LENGTH = 2048;

const PARAMETER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * Refused in every request by `src/http/request-path.ts`: dot segments, also between encoded slashes and backslashes.
 */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:$|[/\\])/;

/**
 * Parses a route, or a path or base path that will become a part of one.
 * @throws RouteSyntaxError also when no request can have this path
 */
export function parseRoute(route: string): ParsedRoute {
  const parsed = readRoute(route);
  for (const segment of parsed.segments) {
    if (segment.kind === 'static' && DOT_SEGMENT.test(segment.value)) {
      throw new RouteSyntaxError(
        'must not have "." or ".." between slashes, encoded ones ("%2F", "%5C") included: no request with such a path is taken',
      );
    }
  }
  return parsed;
}

/**
 * Parses a stored route, which may be from a time when more was allowed.
 * @throws RouteSyntaxError
 */
export function readRoute(route: string): ParsedRoute {
  if (!route.startsWith('/')) throw new RouteSyntaxError('must start with "/"');
  if (route.length > MAX_ROUTE_LENGTH) throw tooLong();
  const segments = splitSegments(route).map(parseSegment);
  const names = new Set<string>();
  for (const segment of segments) {
    if (segment.kind !== 'param') continue;
    if (names.has(segment.name)) throw new RouteSyntaxError(`has the parameter {${segment.name}} twice`);
    names.add(segment.name);
  }
  if (keyOf(segments).length > MAX_ROUTE_LENGTH) throw tooLong();
  return { segments };
}

/** Why a text cannot be a path, or undefined when it can. */
export function routePathProblem(path: string): string | undefined {
  try {
    parseRoute(path);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return thrown.message;
    throw thrown;
  }
}

/** A base path as it is stored: a leading slash, no trailing one; null when there is nothing to put before a path. */
export function normalizeBasePath(basePath: string): string | null {
  const trimmed = basePath.replace(/^\/|\/$/g, '');
  return trimmed === '' ? null : `/${trimmed}`;
}

/**
 * The route of an endpoint: the base path of its collection, then its path. A path that already begins with the
 * base path, whole segments, is the route as it stands.
 * @throws RouteSyntaxError when the two do not make a route, e.g. because both have the same parameter
 */
export function joinRoute(basePath: string | null, path: string): string {
  return withoutBasePath(basePath, path) === undefined ? routeBelow(basePath, path) : path;
}

/**
 * The route of a path below a base path: one after the other, also when the path begins like the base path. That is
 * what an API description means by its paths.
 * @throws RouteSyntaxError when the two do not make a route
 */
export function routeBelow(basePath: string | null, path: string): string {
  const base = splitSegments(basePath ?? '/').map((segment) => `/${segment}`);
  const route = `${base.join('')}${path}`;
  parseRoute(path);
  parseRoute(route);
  return route;
}

/**
 * The part of a path after the base path; undefined when the path does not begin with the base path's segments.
 * @throws RouteSyntaxError
 */
export function withoutBasePath(basePath: string | null, path: string): string | undefined {
  const base = parseRoute(basePath ?? '/').segments;
  const own = parseRoute(path).segments;
  const begins = own.length >= base.length && base.every((segment, at) => sameSegment(segment, own[at]));
  return begins ? `/${splitSegments(path).slice(base.length).join('/')}` : undefined;
}

/** Equal for two routes exactly when they match the same requests. */
export function routeKey(route: string): string {
  return keyOf(parseRoute(route).segments);
}

function keyOf(segments: readonly Segment[]): string {
  return `/${segments.map((segment) => (segment.kind === 'param' ? '{}' : encodeURIComponent(segment.value))).join('/')}`;
}

function splitSegments(path: string): string[] {
  const inner = path.endsWith('/') ? path.slice(1, -1) : path.slice(1);
  return inner === '' ? [] : inner.split('/');
}

function parseSegment(text: string): Segment {
  if (text === '') throw new RouteSyntaxError('has an empty segment ("//")');
  if (text.startsWith('{') && text.endsWith('}')) {
    const name = text.slice(1, -1);
    // Parameters are members of a JavaScript object, which cannot have this name.
    if (!PARAMETER_NAME.test(name) || name === '__proto__') {
      throw new RouteSyntaxError(
        `has a parameter named "${name}"; a name begins with a letter or "_" and continues with letters, digits, "_", "-" and "."`,
      );
    }
    return { kind: 'param', name };
  }
  if (/[{}]/.test(text)) {
    throw new RouteSyntaxError(`has the segment "${text}"; a {parameter} fills a whole segment`);
  }
  if (/[?#]/.test(text)) throw new RouteSyntaxError('must not have a query ("?") or a fragment ("#")');
  if (/[\s\\]/.test(text)) throw new RouteSyntaxError('must not have spaces or backslashes');
  if (text.startsWith(':')) {
    throw new RouteSyntaxError(
      `has the segment "${text}"; a parameter is written {${text.slice(1) || 'name'}}`,
    );
  }
  if (text.includes('*')) throw new RouteSyntaxError('must not have wildcards ("*")');
  const value = decode(text);
  if (CONTROL_CHARACTER.test(value)) throw new RouteSyntaxError('must not have control characters');
  if (value === '.' || value === '..') throw new RouteSyntaxError('must not have "." or ".." as a segment');
  return { kind: 'static', value };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(encodeLoneText(text));
  } catch (thrown) {
    throw new RouteSyntaxError(`has the segment "${text}", which is not valid percent-encoding`, {
      cause: thrown,
    });
  }
}

/** Throws a URIError for text with half a surrogate pair, which no URL can carry. */
function encodeLoneText(text: string): string {
  encodeURIComponent(text);
  return text;
}

function sameSegment(left: Segment, right: Segment | undefined): boolean {
  if (left.kind === 'param') return right?.kind === 'param' && left.name === right.name;
  return right?.kind === 'static' && left.value === right.value;
}

function tooLong(): RouteSyntaxError {
  return new RouteSyntaxError(`must have at most ${MAX_ROUTE_LENGTH} characters`);
}
