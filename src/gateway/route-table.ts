/**
 * The route table: maps host, method and path to a target. It is a trie of path segments for each host, so that adding
 * or removing a route costs the length of that route, however many there are.
 *
 * Exact hosts take precedence over `*`, static segments over parameters. A route that matches the path but not the
 * method does not hide a less specific one that matches both.
 */
import { readRoute } from '../model/route-pattern.js';

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
  readonly statics: Map<string, TrieNode<T>>;
  param: TrieNode<T> | undefined;
  readonly methods: Map<string, Leaf<T>>;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Adding a route again replaces its target. */
export class RouteTable<T> {
  readonly #hosts = new Map<string, TrieNode<T>>();

  add({ domain, method, route }: Route, target: T): void {
    let node = getOrInsert(this.#hosts, domain);
    const paramNames: string[] = [];
    for (const segment of readRoute(route).segments) {
      if (segment.kind === 'static') {
        node = getOrInsert(node.statics, segment.value);
      } else {
        paramNames.push(segment.name);
        node.param ??= emptyNode();
        node = node.param;
      }
    }
    node.methods.set(method, { target, paramNames });
  }

  /** Removes a route if its target is still this one. */
  remove({ domain, method, route }: Route, target: T): void {
    const root = this.#hosts.get(domain);
    if (!root) return;
    const path: { parent: TrieNode<T>; key: string | undefined }[] = [];
    let node: TrieNode<T> | undefined = root;
    for (const segment of readRoute(route).segments) {
      const key = segment.kind === 'static' ? segment.value : undefined;
      path.push({ parent: node, key });
      node = key === undefined ? node.param : node.statics.get(key);
      if (!node) return;
    }
    if (node.methods.get(method)?.target !== target) return;
    node.methods.delete(method);
    for (const { parent, key } of path.reverse()) {
      if (!isEmpty(node)) return;
      if (key === undefined) parent.param = undefined;
      else parent.statics.delete(key);
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
    for (const [at, name] of leaf.paramNames.entries()) params[name] = this.#values[at] ?? '';
    return { kind: 'found', target: leaf.target, params };
  }

  miss(): Lookup<T> {
    if (this.#otherMethods.size === 0) return { kind: 'unknown' };
    const allow = [...this.#otherMethods, ...(this.#otherMethods.has('GET') ? ['HEAD'] : [])];
    return { kind: 'wrong-method', allow: allow.sort() };
  }

  #descend(node: TrieNode<T>, depth: number): Leaf<T> | undefined {
    const segment = this.#segments[depth];
    if (segment === undefined) {
      const leaf = node.methods.get(this.#method);
      if (!leaf) for (const method of node.methods.keys()) this.#otherMethods.add(method);
      return leaf;
    }
    const next = node.statics.get(segment);
    const found = next && this.#descend(next, depth + 1);
    if (found || !node.param || segment === '') return found;
    this.#values.push(segment);
    const below = this.#descend(node.param, depth + 1);
    if (!below) this.#values.pop();
    return below;
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

function emptyNode<T>(): TrieNode<T> {
  return { statics: new Map(), param: undefined, methods: new Map() };
}

function getOrInsert<T>(map: Map<string, TrieNode<T>>, key: string): TrieNode<T> {
  let node = map.get(key);
  if (!node) {
    node = emptyNode();
    map.set(key, node);
  }
  return node;
}

function isEmpty<T>(node: TrieNode<T>): boolean {
  return node.methods.size === 0 && node.param === undefined && node.statics.size === 0;
}
