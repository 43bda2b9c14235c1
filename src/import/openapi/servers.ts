/** The base path of an API: the path of its first server's URL. */
import { normalizeBasePath, routePathProblem } from '../../model/route-pattern.js';
import { isObject, itemsOf, type JsonObject, own, shortened, specError } from './json.js';

/**
 * The base path, with server variables at their defaults.
 * @throws AppError invalid_spec for a variable without default, and for a path that is not a valid base path
 */
export function basePathOf(document: JsonObject): string | null {
  const [server] = itemsOf(own(document, 'servers'));
  if (!isObject(server)) return null;
  const template = own(server, 'url');
  if (typeof template !== 'string') return null;
  const url = template.replace(/\{([^{}]*)\}/g, (_whole, name: string) => defaultOf(server, name));
  const path = pathOf(url);
  const problem = routePathProblem(path);
  if (problem !== undefined) throw specError('/servers/0/url', `the path "${shortened(path)}" ${problem}`);
  return normalizeBasePath(path);
}

function defaultOf(server: JsonObject, name: string): string {
  const variables = own(server, 'variables');
  const described = isObject(variables) ? own(variables, name) : undefined;
  const value = isObject(described) ? own(described, 'default') : undefined;
  if (typeof value !== 'string') {
    throw specError('/servers/0', `the server variable "${shortened(name)}" has no default; give it one`);
  }
  return value;
}

/** The path of an absolute or relative URL, neither decoded nor normalized. */
function pathOf(url: string): string {
  const path = url
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:(?=\/\/)/i, '')
    .replace(/^\/\/[^/?#]*/, '')
    .replace(/^\.(?=\/|$)/, '');
  return path.startsWith('/') ? path : `/${path}`;
}
