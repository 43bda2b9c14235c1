/** Path items with their references resolved. */
import type { EndpointMethod } from '../../model/endpoint-method.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { documentError, entriesOf, own, specError } from './json.js';
import { type References, referenceOf } from './references.js';

/** The methods a path item may have; null for those that endpoints do not support. */
export const METHODS: ReadonlyMap<string, EndpointMethod | null> = new Map<string, EndpointMethod | null>([
  ['get', 'GET'],
  ['post', 'POST'],
  ['put', 'PUT'],
  ['delete', 'DELETE'],
  ['patch', 'PATCH'],
  ['head', null],
  ['options', null],
  ['trace', null],
  // A method of OpenAPI 3.2.
  ['query', null],
]);

/** Members of a path item that are read besides its operations. */
const SHARED_MEMBERS: readonly string[] = ['parameters', 'servers'];

/** A cheap check before the passes over all paths. */
export function requirePaths(document: JsonObject, limit: number): void {
  const paths = own(document, 'paths');
  if (!isObject(paths)) throw documentError('/paths', 'must be an object with the paths of the API');
  if (entriesOf(paths).filter(([path]) => !path.startsWith('x-')).length > limit) {
    throw documentError('/paths', `has more than ${limit} paths (IMPORT_OPERATIONS_LIMIT)`);
  }
}

export class PathItems {
  readonly #references: References;
  /** Thousands of paths may refer to the same large path item. */
  readonly #cache = new Map<JsonObject, JsonObject>();

  constructor(references: References) {
    this.#references = references;
  }

  /**
   * The operations of a path item and their shared members. Members beside a `$ref` override those of its target.
   * @param location of the path item, for error messages
   * @throws SpecError
   */
  read(item: unknown, location: string): JsonObject {
    if (!isObject(item)) throw specError(location, 'is not an object with operations');
    if (referenceOf(item) === undefined) return this.#essentials(item);
    const target = this.#references.resolve(item, location);
    if (!isObject(target)) throw specError(location, 'references what is not a path item');
    return { ...this.#essentials(target), ...this.#essentials(item) };
  }

  #essentials(item: JsonObject): JsonObject {
    const cached = this.#cache.get(item);
    if (cached) return cached;
    const essentials = Object.fromEntries(
      Object.entries(item).filter(([key]) => METHODS.has(key) || SHARED_MEMBERS.includes(key)),
    );
    this.#cache.set(item, essentials);
    return essentials;
  }
}
