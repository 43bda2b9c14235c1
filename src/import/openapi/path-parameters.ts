/** The parameters that a path has, whether or not they are described. */
import { parseRoute } from '../../route-pattern.js';
import type { Parameter } from './document.js';

/**
 * One parameter for each `{name}` of the path, in its order: the described one, else a string.
 * @param path one that `parseRoute` accepts
 */
export function pathParameters(path: string, described: Iterable<Parameter>): readonly Parameter[] {
  const known = new Map([...described].map((parameter) => [parameter.name, parameter]));
  return parseRoute(path).segments.flatMap((segment): Parameter[] => {
    if (segment.kind !== 'param') return [];
    const { name } = segment;
    return [known.get(name) ?? { name, in: 'path', required: true, type: 'string', itemType: 'any' }];
  });
}
