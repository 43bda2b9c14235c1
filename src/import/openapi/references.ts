/** Resolves `$ref`s within the document, and to other files of its bundle. Nothing is fetched or read from disk. */

import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import { own, SpecError, shortened, specError } from './json.js';
import type { OtherFiles } from './other-files.js';
import { type DocumentScan, isData, isMapOfNames } from './scan.js';

/** Longest chain of references, including those that a pointer passes through. */
const MAX_CHAIN = 100;

/** A value and what its position in the document says about the keys of its members. */
interface Position {
  readonly value: unknown;
  /** The keys are arbitrary names. */
  readonly isMap: boolean;
  /** The value is within an extension or in another file, where no key is known to be a keyword. */
  readonly isExtension: boolean;
  /** Empty for the document itself. */
  readonly file: string;
}

export class References {
  readonly #root: unknown;
  readonly #scan: DocumentScan;
  readonly #files: OtherFiles;
  readonly #targets = new Map<string, Position>();

  constructor(root: unknown, scan: DocumentScan, files: OtherFiles) {
    this.#root = root;
    this.#scan = scan;
    this.#files = files;
  }

  /** Follows all references. @param warn called for those without a target: what needs them cannot be read */
  check(warn: Warn): void {
    // Resolving a reference into an extension or another file may add to this list.
    for (const { target, file, location } of this.#scan.references) {
      try {
        this.#resolveTarget(target, file, location, 0);
      } catch (thrown) {
        if (!(thrown instanceof SpecError)) throw thrown;
        warn('references', thrown.message);
      }
    }
  }

  /**
   * Returns the value itself, or the target of its `$ref`.
   * @param location of the value, for error messages
   * @throws SpecError
   */
  resolve(value: unknown, location: string): unknown {
    const file = this.#scan.fileOf(value);
    return this.#follow({ value, isMap: false, isExtension: false, file }, location, 0).value;
  }

  /** Like `resolve`, but undefined when there is no target, of which `check` warns. */
  find(value: unknown): unknown {
    try {
      return this.resolve(value, '');
    } catch (thrown) {
      if (!(thrown instanceof SpecError)) throw thrown;
      return undefined;
    }
  }

  /** The target of the `$ref` of a value, which may have one itself; undefined when there is none. */
  findTarget(value: JsonObject): unknown {
    const target = referenceOf(value);
    if (target === undefined) return undefined;
    try {
      return this.#targetOf(target, this.#scan.fileOf(value), '', 0).value;
    } catch (thrown) {
      if (!(thrown instanceof SpecError)) throw thrown;
      return undefined;
    }
  }

  /** A copy of a value whose references mean the same in the document itself. */
  relocated(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.relocated(item));
    if (!isObject(value)) return value;
    const file = this.#scan.fileOf(value);
    const copy = Object.entries(value).map(([key, member]) => {
      const isReference = file !== '' && key === '$ref' && typeof member === 'string';
      return [key, isReference ? this.#files.fromDocument(file, member) : this.relocated(member)];
    });
    return Object.fromEntries(copy);
  }

  #follow(position: Position, location: string, length: number): Position {
    const target = referenceOf(position.value);
    return target === undefined ? position : this.#resolveTarget(target, position.file, location, length);
  }

  #resolveTarget(target: string, file: string, location: string, length: number): Position {
    return this.#follow(this.#targetOf(target, file, location, length), location, length + 1);
  }

  #targetOf(target: string, file: string, location: string, length: number): Position {
    if (length > MAX_CHAIN) throw specError(location, `$ref "${shortened(target)}" is circular`);
    const key = `${file}\n${target}`;
    const resolved = this.#targets.get(key) ?? this.#find(target, file, location, length + 1);
    this.#targets.set(key, resolved);
    return resolved;
  }

  #find(target: string, from: string, location: string, length: number): Position {
    const file = this.#files.locate(from, target, location);
    const isOther = file !== '';
    const value = isOther ? this.#files.contentOf(file, location) : this.#root;
    const root = { value, isMap: false, isExtension: isOther, file };
    const fragment = fragmentOf(target, location);
    if (fragment !== '' && !fragment.startsWith('/')) return this.#anchor(root, fragment, target, location);
    const path = fragment
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    let position: Position = root;
    for (const key of path) {
      // A pointer may pass through another reference.
      const next = childOf(position, key) ?? childOf(this.#follow(position, location, length), key);
      if (next === undefined) throw missingTarget(target, location);
      if (next === 'data') {
        throw specError(
          location,
          `$ref "${shortened(target)}" points into "${key}", which is data, not a definition; move its target under /components`,
        );
      }
      position = next;
    }
    if (position.isExtension) this.#scan.scanTarget(position.value, path, position.file);
    return position;
  }

  #anchor(root: Position, name: string, target: string, location: string): Position {
    if (root.isExtension) this.#scan.scanTarget(root.value, [], root.file);
    const value = this.#scan.anchor(root.file, name);
    if (value === undefined) throw missingTarget(target, location);
    return { ...root, value };
  }
}

function childOf(
  { value: parent, isMap, isExtension, file }: Position,
  key: string,
): Position | 'data' | undefined {
  const value = memberOf(parent, key);
  if (value === undefined) return undefined;
  if (isExtension || (!isMap && key.startsWith('x-')))
    return { value, isMap: false, isExtension: true, file };
  if (Array.isArray(parent)) return { value, isMap: false, isExtension, file };
  return isData(key, value, isMap) ? 'data' : { value, isMap: isMapOfNames(key, isMap), isExtension, file };
}

/** The target of a value that is a reference. */
export function referenceOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const target = own(value, '$ref');
  return typeof target === 'string' ? target : undefined;
}

function memberOf(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined;
  return isObject(value) ? own(value, key) : undefined;
}

/** What follows the "#", decoded. */
function fragmentOf(target: string, location: string): string {
  const at = target.indexOf('#');
  try {
    return at < 0 ? '' : decodeURIComponent(target.slice(at + 1));
  } catch (cause) {
    throw specError(location, `$ref "${shortened(target)}" is not valid percent-encoding`, { cause });
  }
}

function missingTarget(target: string, location: string): Error {
  return specError(location, `$ref "${shortened(target)}" has no target`);
}
