/**
 * First pass over a document: enforces the limits that bound the cost of later passes, and collects all references.
 * Examples, defaults and extensions are data, of which only the size is checked. The target of a reference is part of
 * the document wherever it is: documents of 3.0 have no other place than extensions for shared path items.
 */

import { isObject, type JsonObject } from '../../util/json-object.js';
import { documentError, pointerOf } from './json.js';

/** Depth limit. Real documents have twenty or thirty levels. */
export const MAX_DEPTH = 256;
/** Objects, arrays and scalars. The largest public documents have about a million. */
const MAX_VALUES = 4_000_000;

export interface Reference {
  readonly target: string;
  /** File of the object that contains the reference; empty for the document itself. */
  readonly file: string;
  /** JSON pointer of this object, after the name of another file. */
  readonly location: string;
}

export interface DocumentScan {
  /** The first reference of each file to each target. Scanning a target may add some. */
  readonly references: ReadonlySet<Reference>;
  /** The file of an object that contains a reference. */
  fileOf(holder: unknown): string;
  /** The schema with an `$anchor`. */
  anchor(file: string, name: string): unknown;
  /**
   * Scans a value in an extension or in another file, which is part of the document because a reference points to it.
   * @param path keys from the root of the file to the value
   * @throws AppError invalid_spec naming the location
   */
  scanTarget(value: unknown, path: readonly string[], file: string): void;
}

/** Keywords whose values are objects with arbitrary names as keys. */
const MAPS = new Set(
  (
    'properties patternProperties $defs definitions dependentSchemas paths pathItems webhooks ' +
    'callbacks responses schemas parameters requestBodies securitySchemes headers examples links ' +
    'content encoding variables scopes mapping'
  ).split(' '),
);

/** Keywords whose values are data, in which `$ref` has no meaning. */
const DATA = new Set(['example', 'default', 'enum', 'const', 'value']);

/** Whether a member of an object is data. The keys of a map are names, never keywords. */
export function isData(key: string, value: unknown, isMap: boolean): boolean {
  if (isMap) return false;
  return DATA.has(key) || key.startsWith('x-') || (key === 'examples' && Array.isArray(value));
}

/** Whether the value of a member is a map; `isMap` tells whether the object that contains the member is one. */
export function isMapOfNames(key: string, isMap: boolean): boolean {
  return !isMap && MAPS.has(key);
}

/**
 * Scans a whole document.
 * @throws AppError invalid_spec when it exceeds a limit, naming the location
 */
export function scanDocument(root: unknown): DocumentScan {
  const scanner = new Scanner();
  scanner.visit(root, false);
  return scanner;
}

class Scanner implements DocumentScan {
  readonly references = new Set<Reference>();
  readonly #known = new Set<string>();
  readonly #anchors = new Map<string, unknown>();
  /** Objects with references in other files than the document itself. */
  readonly #files = new Map<unknown, string>();
  readonly #path: string[] = [];
  readonly #targets = new Set<unknown>();
  #file = '';
  #values = 0;

  fileOf(holder: unknown): string {
    return this.#files.get(holder) ?? '';
  }

  anchor(file: string, name: string): unknown {
    return this.#anchors.get(`${file}#${name}`);
  }

  scanTarget(value: unknown, path: readonly string[], file: string): void {
    if (this.#targets.has(value)) return;
    this.#targets.add(value);
    this.#file = file;
    this.#path.push(...path);
    this.visit(value, false);
    this.#path.length = 0;
  }

  visit(value: unknown, isMap: boolean): void {
    this.#enforceLimits();
    if (Array.isArray(value)) this.#visitItems(value, (item) => this.visit(item, false));
    else if (isObject(value)) {
      if (!isMap) this.#collectReferences(value);
      for (const key of Object.keys(value)) {
        this.#path.push(key);
        const member = value[key];
        if (isData(key, member, isMap)) this.#visitData(member);
        else this.visit(member, isMapOfNames(key, isMap));
        this.#path.pop();
      }
    }
  }

  #visitData(value: unknown): void {
    this.#enforceLimits();
    if (Array.isArray(value)) this.#visitItems(value, (item) => this.#visitData(item));
    else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        this.#path.push(key);
        this.#visitData(value[key]);
        this.#path.pop();
      }
    }
  }

  #visitItems(items: readonly unknown[], visit: (item: unknown) => void): void {
    items.forEach((item, at) => {
      this.#path.push(String(at));
      visit(item);
      this.#path.pop();
    });
  }

  #collectReferences(object: JsonObject): void {
    const { $ref, $dynamicRef, $anchor, $dynamicAnchor } = object;
    for (const target of [$ref, $dynamicRef]) if (typeof target === 'string') this.#collect(object, target);
    for (const name of [$anchor, $dynamicAnchor]) {
      const key = `${this.#file}#${name}`;
      if (typeof name === 'string' && !this.#anchors.has(key)) this.#anchors.set(key, object);
    }
  }

  #collect(holder: JsonObject, target: string): void {
    const file = this.#file;
    if (file !== '') this.#files.set(holder, file);
    const key = `${file}\n${target}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.references.add({ target, file, location: `${file}${pointerOf(this.#path)}` });
  }

  #enforceLimits(): void {
    if (this.#path.length > MAX_DEPTH) {
      throw documentError(pointerOf(this.#path.slice(0, 8)), `is nested more than ${MAX_DEPTH} levels deep`);
    }
    this.#values++;
    if (this.#values > MAX_VALUES) {
      throw documentError('/', `has more than ${MAX_VALUES} values, counting each use of an alias`);
    }
  }
}
