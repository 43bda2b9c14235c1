/**
 * First pass over a document: enforces the limits that bound the cost of later passes, rejects text that cannot be
 * stored, and collects all references. Examples, defaults and extensions are data, of which only the size is checked,
 * except for the parts of an extension that a reference points to: documents of 3.0 have no other place for shared path
 * items.
 */
import { textProblem } from '../../model/formats.js';
import { isObject, pointerOf, specError } from './json.js';

/** Depth limit. Real documents have twenty or thirty levels. */
export const MAX_DEPTH = 256;
/** Objects, arrays and scalars. The largest public documents have about a million. */
const MAX_VALUES = 4_000_000;
/** In one list, whose parameters are all compared with each other. */
const MAX_PARAMETERS = 500;

export interface Reference {
  readonly target: string;
  /** JSON pointer of the object that contains the reference. */
  readonly location: string;
}

export interface DocumentScan {
  readonly references: readonly Reference[];
  /** Schemas by their `$anchor`. */
  readonly anchors: ReadonlyMap<string, unknown>;
  /**
   * Scans a value in an extension, which is part of the document because a reference points to it.
   * @param path keys from the root to the value
   * @throws AppError invalid_spec naming the location
   */
  scanExtension(value: unknown, path: readonly string[]): void;
  /** Whether `scanExtension` was called with this value. */
  isReferencedExtension(value: unknown): boolean;
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
 * @throws AppError invalid_spec naming the location
 */
export function scanDocument(root: unknown): DocumentScan {
  const scanner = new Scanner();
  scanner.visit(root, false);
  return scanner;
}

class Scanner implements DocumentScan {
  readonly references: Reference[] = [];
  readonly anchors = new Map<string, unknown>();
  readonly #path: string[] = [];
  readonly #extensions = new Set<unknown>();
  #values = 0;

  scanExtension(value: unknown, path: readonly string[]): void {
    if (this.#extensions.has(value)) return;
    this.#extensions.add(value);
    this.#path.push(...path);
    this.visit(value, false);
    this.#path.length = 0;
  }

  isReferencedExtension(value: unknown): boolean {
    return this.#extensions.has(value);
  }

  visit(value: unknown, isMap: boolean): void {
    this.#enforceLimits();
    if (typeof value === 'string') this.#checkText(value);
    else if (Array.isArray(value)) this.#visitItems(value, (item) => this.visit(item, false));
    else if (isObject(value)) {
      if (!isMap) this.#collectReferences(value);
      for (const key of Object.keys(value)) {
        this.#path.push(key);
        this.#checkKey(key);
        const member = value[key];
        if (key === 'parameters' && Array.isArray(member)) this.#checkParameters(member);
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

  #collectReferences(object: Readonly<Record<string, unknown>>): void {
    for (const keyword of ['$ref', '$dynamicRef']) {
      const target = object[keyword];
      if (typeof target === 'string') this.references.push({ target, location: pointerOf(this.#path) });
    }
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const name = object[keyword];
      if (typeof name === 'string' && !this.anchors.has(name)) this.anchors.set(name, object);
    }
  }

  #enforceLimits(): void {
    if (this.#path.length > MAX_DEPTH) {
      throw specError(pointerOf(this.#path.slice(0, 8)), `is nested more than ${MAX_DEPTH} levels deep`);
    }
    this.#values++;
    if (this.#values > MAX_VALUES) {
      throw specError('/', `has more than ${MAX_VALUES} values, counting each use of an alias`);
    }
  }

  #checkParameters(list: readonly unknown[]): void {
    if (list.length <= MAX_PARAMETERS) return;
    throw specError(pointerOf(this.#path), `has more than ${MAX_PARAMETERS} parameters`);
  }

  #checkKey(key: string): void {
    // Assigning this key to a JavaScript object would change its prototype.
    if (key === '__proto__') throw specError(pointerOf(this.#path), 'the name "__proto__" cannot be used');
    this.#checkText(key);
  }

  #checkText(text: string): void {
    const problem = textProblem(text);
    if (problem !== undefined) throw specError(pointerOf(this.#path), problem);
  }
}
