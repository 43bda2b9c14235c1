/**
 * The first look at a document: bounds that keep everything after it fast, texts that could not be stored, and all
 * references. What stands in examples, defaults and extensions is data: only its size is looked at. But what a reference
 * leads to in an extension is none: documents of 3.0 have no other place for path items that several paths share.
 */
import { textProblem } from '../../validation/formats.js';
import { isObject, pointerOf, specError } from './json.js';

/** Levels of nesting. Documents have some twenty or thirty. */
export const MAX_DEPTH = 256;
/** Objects, arrays and scalars. The largest public documents have about a million. */
const MAX_VALUES = 4_000_000;
/** In one list: each is compared with all others. */
const MAX_PARAMETERS = 500;

/** A reference, and where it stands. */
export interface FoundReference {
  readonly target: string;
  /** JSON pointer of the object that has it. */
  readonly place: string;
}

export interface Survey {
  readonly references: readonly FoundReference[];
  /** Schemas by the names that `$anchor` gives them. */
  readonly anchors: ReadonlyMap<string, unknown>;
  /**
   * Looks at what stands in an extension, and is a part of the document because a reference leads there.
   * @param path where it stands
   * @throws AppError invalid_spec naming the place
   */
  include(value: unknown, path: readonly string[]): void;
  /** Whether it was given to `include`. */
  isIncluded(value: unknown): boolean;
}

/** Keywords whose values are objects with names of the author's choice. */
const MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'paths',
  'pathItems',
  'webhooks',
  'callbacks',
  'responses',
  'schemas',
  'parameters',
  'requestBodies',
  'securitySchemes',
  'headers',
  'examples',
  'links',
  'content',
  'encoding',
  'variables',
  'scopes',
  'mapping',
]);

/** Keywords whose values are data; a `$ref` in them is none. */
const DATA = new Set(['example', 'default', 'enum', 'const', 'value']);

/** Whether a member of an object is data. The names of a map's members mean nothing. */
export function isData(key: string, value: unknown, isMap: boolean): boolean {
  if (isMap) return false;
  return DATA.has(key) || key.startsWith('x-') || (key === 'examples' && Array.isArray(value));
}

/** Whether the value of a member is a map, given whether the object that has it is one. */
export function isMapOfNames(key: string, isMap: boolean): boolean {
  return !isMap && MAPS.has(key);
}

/**
 * Looks at the whole document.
 * @throws AppError invalid_spec naming the place
 */
export function survey(root: unknown): Survey {
  const surveyor = new Surveyor();
  surveyor.visit(root, false);
  return surveyor;
}

class Surveyor implements Survey {
  readonly references: FoundReference[] = [];
  readonly anchors = new Map<string, unknown>();
  private readonly path: string[] = [];
  private readonly included = new Set<unknown>();
  private values = 0;

  include(value: unknown, path: readonly string[]): void {
    if (this.included.has(value)) return;
    this.included.add(value);
    this.path.push(...path);
    this.visit(value, false);
    this.path.length = 0;
  }

  isIncluded(value: unknown): boolean {
    return this.included.has(value);
  }

  visit(value: unknown, isMap: boolean): void {
    this.count();
    if (typeof value === 'string') this.checkText(value);
    else if (Array.isArray(value)) this.visitItems(value, (item) => this.visit(item, false));
    else if (isObject(value)) {
      if (!isMap) this.note(value);
      for (const key of Object.keys(value)) {
        this.path.push(key);
        this.checkKey(key);
        const member = value[key];
        if (key === 'parameters' && Array.isArray(member)) this.checkParameters(member);
        if (isData(key, member, isMap)) this.visitData(member);
        else this.visit(member, isMapOfNames(key, isMap));
        this.path.pop();
      }
    }
  }

  private visitData(value: unknown): void {
    this.count();
    if (Array.isArray(value)) this.visitItems(value, (item) => this.visitData(item));
    else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        this.path.push(key);
        this.visitData(value[key]);
        this.path.pop();
      }
    }
  }

  private visitItems(items: readonly unknown[], visit: (item: unknown) => void): void {
    items.forEach((item, at) => {
      this.path.push(String(at));
      visit(item);
      this.path.pop();
    });
  }

  private note(object: Readonly<Record<string, unknown>>): void {
    for (const keyword of ['$ref', '$dynamicRef']) {
      const target = object[keyword];
      if (typeof target === 'string') this.references.push({ target, place: pointerOf(this.path) });
    }
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const name = object[keyword];
      if (typeof name === 'string' && !this.anchors.has(name)) this.anchors.set(name, object);
    }
  }

  private count(): void {
    if (this.path.length > MAX_DEPTH) {
      throw specError(pointerOf(this.path.slice(0, 8)), `is nested more than ${MAX_DEPTH} levels deep`);
    }
    this.values++;
    if (this.values > MAX_VALUES) {
      throw specError('/', `has more than ${MAX_VALUES} values, what aliases repeat counted each time`);
    }
  }

  private checkParameters(list: readonly unknown[]): void {
    if (list.length <= MAX_PARAMETERS) return;
    throw specError(pointerOf(this.path), `has more than ${MAX_PARAMETERS} parameters`);
  }

  private checkKey(key: string): void {
    // JavaScript objects cannot hold this one name safely.
    if (key === '__proto__') throw specError(pointerOf(this.path), 'the name "__proto__" cannot be used');
    this.checkText(key);
  }

  private checkText(text: string): void {
    const problem = textProblem(text);
    if (problem !== undefined) throw specError(pointerOf(this.path), problem);
  }
}
