/**
 * The route table: maps host, method and path to a target. It is a trie of path segments for each host, so that adding
 * or removing a route costs the length of that route, however many there are.
 *
 * Exact hosts take precedence over `*`; segment by segment from the left, static ones over mixed ones, those over
 * parameters, and those over a catch-all. A route that matches the path but not the method does not hide a less
 * specific one that matches both.
 */
import { parameterNames, readRoute, type Segment } from '../model/route-pattern.js';
import { interned } from '../util/text.js';
import { MixedSegments, readParameters } from './mixed-segments.js';

/** The key of a route. */
export interface Route {
  /** A host name, or `*` for all. */
  readonly domain: string;
  readonly method: string;
  /** e.g. `/items/{id}`. */
  readonly route: string;
}

/** The result of a lookup. */
export type Lookup<T> =
  | { readonly kind: 'found'; readonly target: T; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'wrong-method'; readonly allow: readonly string[] }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'malformed' };

interface Leaf<T> {
  readonly target: T;
  readonly paramNames: readonly string[];
}

interface TrieNode<T> {
  statics: Map<string, TrieNode<T>> | undefined;
  mixed: MixedSegments<TrieNode<T>> | undefined;
  param: TrieNode<T> | undefined;
  /** Of routes that match any path below this node. */
  catchAll: TrieNode<T> | undefined;
  readonly methods: Map<string, Leaf<T>>;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Adding a route again replaces its target. */
export class RouteTable<T> {
  readonly #hosts = new Map<string, TrieNode<T>>();

  add({ domain, method, route }: Route, target: T): void {
    const { segments } = readRoute(route);
    let node = getOrInsert(this.#hosts, domain);
    for (const segment of segments) node = childOf(node, segment) ?? addChild(node, segment);
    const paramNames = segments.flatMap(parameterNames).map(interned);
    node.methods.set(method, { target, paramNames });
  }

  /** Removes a route if its target is still this one. */
  remove({ domain, method, route }: Route, target: T): void {
    const root = this.#hosts.get(domain);
    if (!root) return;
    const path: { readonly parent: TrieNode<T>; readonly segment: Segment }[] = [];
    let node = root;
    for (const segment of readRoute(route).segments) {
      path.push({ parent: node, segment });
      const next = childOf(node, segment);
      if (!next) return;
      node = next;
    }
    if (node.methods.get(method)?.target !== target) return;
    node.methods.delete(method);
    for (const { parent, segment } of path.reverse()) {
      if (!isEmpty(node)) return;
      removeChild(parent, segment);
      node = parent;
    }
    if (isEmpty(root)) this.#hosts.delete(domain);
  }

  /**
   * Finds the target for a request.
   * @param host lower-case, without port
   * @param path raw path of the request, without query
   */
  find(host: string, method: string, path: string): Lookup<T> {
    const segments = splitPath(path);
    if (segments === undefined) return { kind: 'malformed' };
    // Routes of GET answer HEAD.
    const search = new Search<T>(segments, method === 'HEAD' ? 'GET' : method);
    return search.in(this.#hosts.get(host)) ?? search.in(this.#hosts.get('*')) ?? search.miss();
  }
}

class Search<T> {
  readonly #segments: readonly string[];
  readonly #method: string;
  readonly #values: string[] = [];
  readonly #otherMethods = new Set<string>();

  constructor(segments: readonly string[], method: string) {
    this.#segments = segments;
    this.#method = method;
  }

  in(root: TrieNode<T> | undefined): Lookup<T> | undefined {
    const leaf = root && this.#descend(root, 0);
    if (!leaf) return undefined;
    if (leaf.paramNames.length === 0) return { kind: 'found', target: leaf.target, params: NO_PARAMS };
    const params: Record<string, string> = {};
    for (let at = 0; at < leaf.paramNames.length; at++)
      params[leaf.paramNames[at] ?? ''] = this.#values[at] ?? '';
    return { kind: 'found', target: leaf.target, params };
  }

  miss(): Lookup<T> {
    if (this.#otherMethods.size === 0) return { kind: 'unknown' };
    const allow = [...this.#otherMethods, ...(this.#otherMethods.has('GET') ? ['HEAD'] : [])];
    return { kind: 'wrong-method', allow: allow.sort() };
  }

  #descend(node: TrieNode<T>, depth: number): Leaf<T> | undefined {
    const segment = this.#segments[depth];
    if (segment === undefined) return this.#leafOf(node);
    const next = node.statics?.get(segment);
    const found = next && this.#descend(next, depth + 1);
    if (found || segment === '') return found;
    const below = this.#mixed(node, segment, depth) ?? this.#with(segment, node.param, depth + 1);
    if (below || !node.catchAll) return below;
    return this.#with(this.#segments.slice(depth).join('/'), node.catchAll, this.#segments.length);
  }

  #mixed({ mixed }: TrieNode<T>, segment: string, depth: number): Leaf<T> | undefined {
    if (!mixed) return undefined;
    const had = this.#values.length;
    for (const candidate of mixed.candidates(segment)) {
      if (!readParameters(candidate, segment, this.#values)) continue;
      const below = this.#descend(candidate.target, depth + 1);
      if (below) return below;
      this.#values.length = had;
    }
    return undefined;
  }

  /** Searches below a segment that has given this value, and forgets it when there is nothing. */
  #with(value: string, node: TrieNode<T> | undefined, depth: number): Leaf<T> | undefined {
    if (!node) return undefined;
    this.#values.push(value);
    const found = this.#descend(node, depth);
    if (!found) this.#values.pop();
    return found;
  }

  #leafOf(node: TrieNode<T>): Leaf<T> | undefined {
    const leaf = node.methods.get(this.#method);
    if (!leaf) for (const method of node.methods.keys()) this.#otherMethods.add(method);
    return leaf;
  }
}

/** The percent-decoded segments of a path, without a trailing slash; undefined when the path is invalid. */
function splitPath(path: string): string[] | undefined {
  if (path.charCodeAt(0) !== 47 /* / */) return undefined;
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
  if (end === 1) return [];
  const segments = path.slice(1, end).split('/');
  if (!path.includes('%')) return segments;
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined; // "%" without two digits, or bytes that are not UTF-8
  }
}

function childOf<T>(node: TrieNode<T>, segment: Segment): TrieNode<T> | undefined {
  if (segment.kind === 'static') return node.statics?.get(segment.value);
  if (segment.kind === 'mixed') return node.mixed?.get(segment.texts);
  return segment.kind === 'param' ? node.param : node.catchAll;
}

function addChild<T>(node: TrieNode<T>, segment: Segment): TrieNode<T> {
  const child = emptyNode<T>();
  if (segment.kind === 'static') {
    node.statics ??= new Map();
    node.statics.set(segment.value, child);
  } else if (segment.kind === 'param') node.param = child;
  else if (segment.kind === 'catch-all') node.catchAll = child;
  else {
    node.mixed ??= new MixedSegments();
    node.mixed.add(segment.texts, child);
  }
  return child;
}

function removeChild<T>(node: TrieNode<T>, segment: Segment): void {
  if (segment.kind === 'static') node.statics?.delete(segment.value);
  else if (segment.kind === 'param') node.param = undefined;
  else if (segment.kind === 'catch-all') node.catchAll = undefined;
  else node.mixed?.delete(segment.texts);
  if (node.mixed?.isEmpty) node.mixed = undefined;
}

function emptyNode<T>(): TrieNode<T> {
  return { statics: undefined, mixed: undefined, param: undefined, catchAll: undefined, methods: new Map() };
}

function getOrInsert<T>(map: Map<string, TrieNode<T>>, key: string): TrieNode<T> {
  let node = map.get(key);
  if (!node) {
    node = emptyNode();
    map.set(key, node);
  }
  return node;
}

function isEmpty<T>({ methods, statics, mixed, param, catchAll }: TrieNode<T>): boolean {
  return methods.size === 0 && (statics?.size ?? 0) === 0 && !mixed && !param && !catchAll;
}
