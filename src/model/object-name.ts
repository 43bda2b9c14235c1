/** Names by which people know objects, instead of their ids. */
import { ENDPOINT_METHODS } from './endpoint-method.js';
import { RouteSyntaxError, routeKey } from './route-pattern.js';

/** Kinds of objects that have names. */
export const NAMED_KINDS = ['endpoint', 'collection', 'domain', 'service'] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];

/** What a name says of an endpoint. */
export type EndpointName =
  /** `HOST/NAME` or `HOST/COLLECTION/NAME`: names may have slashes. */
  | { readonly host: string; readonly path: string }
  /** `METHOD HOST/ROUTE`. */
  | { readonly host: string; readonly method: string; readonly key: string };

const ROUTE = new RegExp(`^(${ENDPOINT_METHODS.join('|')}) ([^/ ]+)(/.*)$`, 's');
const PATH = /^([^/]+)\/(.+)$/s;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isObjectId(name: string): boolean {
  return UUID.test(name);
}

/** What a text says, in every way in which it can be read; none: it is no name of an endpoint. */
export function endpointNames(text: string): EndpointName[] {
  const [, method, routeHost = '', route = ''] = ROUTE.exec(text) ?? [];
  const key = method === undefined ? undefined : keyOf(route);
  const byPath = hostAndPath(text);
  return [
    ...(method !== undefined && key !== undefined ? [{ host: routeHost.toLowerCase(), method, key }] : []),
    ...(byPath ? [byPath] : []),
  ];
}

/** `HOST/NAME`; undefined: it is none. */
export function hostAndPath(text: string): { readonly host: string; readonly path: string } | undefined {
  const [, host, path] = PATH.exec(text) ?? [];
  return host === undefined || path === undefined ? undefined : { host: host.toLowerCase(), path };
}

function keyOf(route: string): string | undefined {
  try {
    return routeKey(route);
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return undefined;
    throw thrown;
  }
}
