/**
 * Route patterns: `/items/{id}`, `/reports/{id}.json`, `/files/{*path}`. Pure; the management API validates and stores
 * with it. The front reads the same ones (`rust/front/src/routes/pattern.rs`). Static text is compared percent-decoded,
 * parameters regardless of their names, and one trailing slash means nothing.
 */

/** One part of a route between two slashes. Percent-encoding in texts is already undone: they may hold a slash. */
export type Segment =
  /** Matches this text. */
  | { readonly kind: 'static'; readonly value: string }
  /** Parameters and literal text: `{id}.json` has the texts `''` and `'.json'` around its parameter. */
  | { readonly kind: 'mixed'; readonly texts: readonly string[]; readonly names: readonly string[] }
  /** Matches any one segment that is not empty. */
  | { readonly kind: 'param'; readonly name: string }
  /** Matches the rest of a path, if that is not empty. Only the last segment can be one. */
  | { readonly kind: 'catch-all'; readonly name: string };

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
 * Refused in every request, as by `src/http/received-head.ts`: dot segments, also between encoded slashes and
 * backslashes.
 */
export const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:$|[/\\])/;

/**
 * Parses a route, or a path or base path that will become a part of one.
 * @throws RouteSyntaxError also when no request can have this path
 */
export function parseRoute(route: string): ParsedRoute {
  if (!route.startsWith('/')) throw new RouteSyntaxError('must start with "/"');
  if (route.length > MAX_ROUTE_LENGTH) throw tooLong();
  const segments = splitSegments(route).map(parseSegment);
  const names = new Set<string>();
  for (const name of segments.flatMap(parameterNames)) {
    if (names.has(name)) throw new RouteSyntaxError(`has the parameter {${name}} twice`);
    names.add(name);
  }
  if (segments.some(({ kind }, at) => kind === 'catch-all' && at < segments.length - 1)) {
    throw new RouteSyntaxError('has text after {*…}, which matches all the rest of a path');
  }
  if (keyOf(segments).length > MAX_ROUTE_LENGTH) throw tooLong();
  if (segments.some((segment) => DOT_SEGMENT.test(textOf(segment)))) {
    throw new RouteSyntaxError(
      'must not have "." or ".." between slashes, encoded ones ("%2F", "%5C") included: no request with such a path is taken',
    );
  }
  return { segments };
}

/** The names of the parameters of a segment, in their order. */
export function parameterNames(segment: Segment): readonly string[] {
  if (segment.kind === 'static') return [];
  return segment.kind === 'mixed' ? segment.names : [segment.name];
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

/** Why a text cannot be a base path, or undefined when it can. Slashes at its ends are optional. */
export function basePathProblem(basePath: string): string | undefined {
  const path = basePath.startsWith('/') ? basePath : `/${basePath}`;
  const problem = routePathProblem(path);
  if (problem !== undefined) return problem;
  const hasCatchAll = parseRoute(path).segments.some(({ kind }) => kind === 'catch-all');
  return hasCatchAll ? 'must not have {*…}: paths follow it' : undefined;
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
  if (route !== path) parseRoute(route);
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
  return `/${segments.map(keyOfSegment).join('/')}`;
}

/** Braces of texts are encoded. */
function keyOfSegment(segment: Segment): string {
  if (segment.kind === 'static')
    return PLAIN.test(segment.value) ? segment.value : encodeURIComponent(segment.value);
  if (segment.kind === 'mixed') return segment.texts.map(encodeURIComponent).join('{}');
  return segment.kind === 'param' ? '{}' : '{*}';
}

function splitSegments(path: string): string[] {
  const inner = path.endsWith('/') ? path.slice(1, -1) : path.slice(1);
  return inner === '' ? [] : inner.split('/');
}

/** Text that means itself, in a path and in a key: nearly all there is. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
const PARAMETER = /(\{[^{}]*\})/;

function parseSegment(text: string): Segment {
  if (text === '') throw new RouteSyntaxError('has an empty segment ("//")');
  if (PLAIN.test(text)) return { kind: 'static', value: text };
  const parts = text.split(PARAMETER);
  const texts = parts.filter((_, at) => at % 2 === 0).map((literal) => parseLiteral(literal, text));
  const names = parts.filter((_, at) => at % 2 === 1).map((braced) => braced.slice(1, -1));
  const [name, ...others] = names;
  if (name === undefined) return parseStatic(text, texts[0] ?? '');
  const isWhole = others.length === 0 && texts.every((literal) => literal === '');
  if (name.startsWith('*')) {
    if (!isWhole) throw new RouteSyntaxError(`has the segment "${text}"; {${name}} fills a whole segment`);
    return { kind: 'catch-all', name: parseName(name.slice(1)) };
  }
  if (isWhole) return { kind: 'param', name: parseName(name) };
  if (texts.slice(1, -1).includes('')) {
    throw new RouteSyntaxError(`has the segment "${text}"; there must be text between two parameters`);
  }
  requireNoColon(text);
  return { kind: 'mixed', texts, names: names.map(parseName) };
}

function parseName(name: string): string {
  // Parameters are members of a JavaScript object, which cannot have this name.
  if (!PARAMETER_NAME.test(name) || name === '__proto__') {
    throw new RouteSyntaxError(
      `has a parameter named "${name}"; a name begins with a letter or "_" and continues with letters, digits, "_", "-" and "."`,
    );
  }
  return name;
}

function parseStatic(text: string, value: string): Segment {
  requireNoColon(text);
  if (value === '.' || value === '..') throw new RouteSyntaxError('must not have "." or ".." as a segment');
  return { kind: 'static', value };
}

/** In other routers, that is how a parameter begins. */
function requireNoColon(text: string): void {
  if (!text.startsWith(':')) return;
  throw new RouteSyntaxError(
    `has the segment "${text}"; a parameter is written {${text.slice(1) || 'name'}}`,
  );
}

/** @param segment for the message */
function parseLiteral(text: string, segment: string): string {
  if (/[{}]/.test(text))
    throw new RouteSyntaxError(`has the segment "${segment}", whose braces do not match`);
  if (/[?#]/.test(text)) throw new RouteSyntaxError('must not have a query ("?") or a fragment ("#")');
  if (/[\s\\]/.test(text)) throw new RouteSyntaxError('must not have spaces or backslashes');
  if (text.includes('*')) {
    throw new RouteSyntaxError(
      'must not have wildcards ("*"); {*name} at the end matches the rest of a path',
    );
  }
  const value = decode(text);
  if (CONTROL_CHARACTER.test(value)) throw new RouteSyntaxError('must not have control characters');
  return value;
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
  if (right === undefined || keyOfSegment(left) !== keyOfSegment(right)) return false;
  const names = parameterNames(right);
  return parameterNames(left).every((name, at) => name === names[at]);
}

/** The text of a segment, with a letter for each parameter. */
function textOf(segment: Segment): string {
  if (segment.kind === 'static') return segment.value;
  return segment.kind === 'mixed' ? segment.texts.join('x') : '';
}

function tooLong(): RouteSyntaxError {
  return new RouteSyntaxError(`must have at most ${MAX_ROUTE_LENGTH} characters`);
}

/**
 * Whether a path, without its query, matches a route. The front decides where requests go
 * (`rust/front/src/routes/search.rs`); this is for those that name their endpoint.
 */
export function matchesRoute(route: string, path: string): boolean {
  let at = 0;
  const given = splitSegments(path).map(decodeOrNothing);
  for (const segment of parseRoute(route).segments) {
    if (segment.kind === 'catch-all') return at < given.length && given[at] !== '';
    const text = given[at++];
    if (text === undefined || text === '' || !matchesSegment(segment, text)) return false;
  }
  return at === given.length;
}

/** Undefined, which matches nothing, when it is not valid percent-encoding. */
function decodeOrNothing(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function matchesSegment(segment: Exclude<Segment, { kind: 'catch-all' }>, text: string): boolean {
  if (segment.kind === 'param') return true;
  if (segment.kind === 'static') return text === segment.value;
  const [first = '', ...rest] = segment.texts;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  // Each parameter but the last takes as little as possible, and at least one character.
  for (const [index, literal] of rest.entries()) {
    const isLast = index === rest.length - 1;
    const end = isLast ? text.length - literal.length : text.indexOf(literal, at + 1);
    if (end <= at || (isLast && !text.endsWith(literal))) return false;
    at = end + literal.length;
  }
  return true;
}
