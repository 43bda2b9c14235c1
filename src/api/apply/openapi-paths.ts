/** The paths of a document that was imported, as its endpoints are now. */
import { itemsOf, own } from '../../import/openapi/json.js';
import { METHODS } from '../../import/openapi/path-items.js';
import { referenceOf } from '../../import/openapi/references.js';
import { isObject, type JsonObject } from '../../util/json-object.js';

/** Longest chain of references to a path item or a parameter. */
const MAX_CHAIN = 100;

export class DocumentPaths {
  readonly #document: JsonObject;
  readonly #paths: Map<string, unknown>;

  constructor(document: JsonObject) {
    this.#document = document;
    const paths = own(document, 'paths');
    this.#paths = new Map(isObject(paths) ? Object.entries(paths) : []);
  }

  /** An operation of the document. */
  find(method: string, path: string): JsonObject | undefined {
    const operation = own(this.#itemOf(path), method.toLowerCase());
    return isObject(operation) ? operation : undefined;
  }

  /** Puts another one in its place. */
  replace(method: string, path: string, operation: JsonObject): void {
    const item = this.#itemOf(path);
    if (own(item, method.toLowerCase()) === operation) return;
    this.#paths.set(path, { ...item, [method.toLowerCase()]: operation });
  }

  /** An operation with the parameters that it has from its path, for another path. */
  alone(path: string, operation: JsonObject): JsonObject {
    const shared = itemsOf(own(this.#itemOf(path), 'parameters'));
    if (shared.length === 0) return operation;
    const all = [...shared, ...itemsOf(own(operation, 'parameters'))];
    return { ...operation, parameters: [...new Map(all.map((one) => [this.#keyOf(one), one])).values()] };
  }

  /** Adds an operation, to which parameters of other operations of its path do not apply. */
  add(method: string, path: string, operation: JsonObject): void {
    const item = this.#itemOf(path);
    const { parameters, ...others } = item;
    const alone =
      itemsOf(parameters).length === 0
        ? others
        : Object.fromEntries(
            Object.entries(others).map(([key, member]) => [
              key,
              METHODS.has(key) && isObject(member) ? this.alone(path, member) : member,
            ]),
          );
    this.#paths.set(path, { ...alone, [method.toLowerCase()]: operation });
  }

  /**
   * Removes all operations that could be endpoints but these, and paths that have none left.
   * @param kept METHOD and path
   */
  keepOnly(kept: ReadonlySet<string>): void {
    for (const [path, value] of this.#paths) {
      if (path.startsWith('x-')) continue;
      const item = this.#itemOf(path);
      const operations = Object.keys(item).filter((key) => METHODS.has(key));
      const left = operations.filter((key) => {
        const method = METHODS.get(key);
        return method && kept.has(`${method} ${path}`);
      });
      const removed = operations.filter((key) => METHODS.get(key) && !left.includes(key));
      if (left.length === 0) this.#paths.delete(path);
      else if (removed.length > 0) {
        const others = Object.entries(item).filter(([key]) => !removed.includes(key));
        this.#paths.set(path, Object.fromEntries(others));
      } else this.#paths.set(path, value);
    }
  }

  all(): JsonObject {
    return Object.fromEntries(this.#paths);
  }

  /** A path item without a reference: what is beside one comes first. */
  #itemOf(path: string): JsonObject {
    const item = this.#paths.get(path);
    if (!isObject(item)) return {};
    if (referenceOf(item) === undefined) return item;
    const { $ref: _, ...members } = item;
    const target = this.#resolve(item);
    return isObject(target) ? { ...target, ...members } : members;
  }

  #keyOf(parameter: unknown): string {
    const described = this.#resolve(parameter);
    if (!isObject(described)) return JSON.stringify(parameter);
    const name = String(own(described, 'name'));
    const where = own(described, 'in');
    return `${where} ${where === 'header' ? name.toLowerCase() : name}`;
  }

  #resolve(value: unknown): unknown {
    let current = value;
    for (let length = 0; length < MAX_CHAIN; length++) {
      const target = referenceOf(current);
      if (target === undefined) return current;
      current = this.#at(target);
    }
    return undefined;
  }

  #at(reference: string): unknown {
    if (!reference.startsWith('#/')) return undefined;
    return reference
      .slice(2)
      .split('/')
      .reduce<unknown>((value, key) => {
        const name = decoded(key).replaceAll('~1', '/').replaceAll('~0', '~');
        if (Array.isArray(value)) return value[Number(name)];
        return isObject(value) ? own(value, name) : undefined;
      }, this.#document);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
