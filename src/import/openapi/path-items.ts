/** Path items, their references followed. */
import type { EndpointMethod } from '../../endpoint-method.js';
import { isObject, type JsonObject } from './json.js';
import { type References, referenceOf } from './references.js';

/** The methods a path item may have, and those of them that endpoints have. */
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

/** Besides the operations. */
const READ_MEMBERS: readonly string[] = ['parameters', 'servers'];

export class PathItems {
  /** What thousands of paths refer to is looked through once. */
  private readonly known = new Map<JsonObject, JsonObject>();

  constructor(private readonly references: References) {}

  /**
   * The operations of a path item, and what they have in common. Members beside a `$ref` come before those of what it
   * refers to.
   * @param place where it stands, for messages
   * @throws AppError invalid_spec
   */
  read(item: JsonObject, place: string): JsonObject {
    if (referenceOf(item) === undefined) return this.essentials(item);
    const target = this.references.resolve(item, place);
    return isObject(target)
      ? { ...this.essentials(target), ...this.essentials(item) }
      : this.essentials(item);
  }

  private essentials(item: JsonObject): JsonObject {
    const known = this.known.get(item);
    if (known) return known;
    const essentials = Object.fromEntries(
      Object.entries(item).filter(([key]) => METHODS.has(key) || READ_MEMBERS.includes(key)),
    );
    this.known.set(item, essentials);
    return essentials;
  }
}
