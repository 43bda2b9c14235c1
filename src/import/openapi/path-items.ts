/** Path items with their references resolved. */
import type { EndpointMethod } from '../../model/endpoint-method.js';
import { isObject, type JsonObject } from './json.js';
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
]);

/** Members of a path item that are read besides its operations. */
const SHARED_MEMBERS: readonly string[] = ['parameters', 'servers'];

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
   * @throws AppError invalid_spec
   */
  read(item: JsonObject, location: string): JsonObject {
    if (referenceOf(item) === undefined) return this.#essentials(item);
    const target = this.#references.resolve(item, location);
    return isObject(target)
      ? { ...this.#essentials(target), ...this.#essentials(item) }
      : this.#essentials(item);
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
