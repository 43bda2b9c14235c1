/** The base path of an API: the path of its first server's URL. */
import { basePathProblem, normalizeBasePath } from '../../model/route-pattern.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import { itemsOf, own, shortened } from './json.js';

/** The base path, with server variables at their defaults; null, with a warning, when it cannot be one. */
export function basePathOf(document: JsonObject, warn: Warn): string | null {
  const [server] = itemsOf(own(document, 'servers'));
  if (!isObject(server)) return null;
  const template = own(server, 'url');
  if (typeof template !== 'string') return null;
  const url = template.replace(/\{([^{}]*)\}/g, (whole, name: string) => defaultOf(server, name) ?? whole);
  const path = pathOf(url);
  const problem = /[{}]/.test(path) ? 'has a variable without a default' : basePathProblem(path);
  if (problem === undefined) return normalizeBasePath(path);
  warn('servers', `/servers/0/url: the path "${shortened(path)}" ${problem}; the API has no base path`);
  return null;
}

function defaultOf(server: JsonObject, name: string): string | undefined {
  const variables = own(server, 'variables');
  const described = isObject(variables) ? own(variables, name) : undefined;
  const value = isObject(described) ? own(described, 'default') : undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
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
