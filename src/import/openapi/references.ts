/** Resolves `$ref`s within the document. External references are rejected: nothing is fetched or read from disk. */
import { isObject, own, shortened, specError } from './json.js';
import { type DocumentScan, isData, isMapOfNames } from './scan.js';

/** Longest chain of references, including those that a pointer passes through. */
const MAX_CHAIN = 100;

/** A value and what its position in the document says about the keys of its members. */
interface Position {
  readonly value: unknown;
  /** The keys are arbitrary names. */
  readonly isMap: boolean;
  /** The value is within an extension, where no key is a keyword. */
  readonly isExtension: boolean;
}

export class References {
  readonly #root: unknown;
  readonly #scan: DocumentScan;
  readonly #targets = new Map<string, Position>();

  /**
   * @throws AppError invalid_spec for a reference that is external, circular, or without target, or points into data
   */
  constructor(root: unknown, scan: DocumentScan) {
    this.#root = root;
    this.#scan = scan;
    const checked = new Set<string>();
    // Resolving a reference into an extension may append to this list.
    for (const { target, location } of scan.references) {
      if (checked.has(target)) continue;
      this.resolve({ $ref: target }, location);
      checked.add(target);
    }
  }

  /**
   * Returns the value itself, or the target of its `$ref`.
   * @param location of the value, for error messages
   * @throws AppError invalid_spec
   */
  resolve(value: unknown, location: string): unknown {
    return this.#follow({ value, isMap: false, isExtension: false }, location, 0).value;
  }

  /** Whether this value is within an extension and the target of a reference. */
  isReferencedExtension(value: unknown): boolean {
    return this.#scan.isReferencedExtension(value);
  }

  #follow(position: Position, location: string, length: number): Position {
    const target = referenceOf(position.value);
    if (target === undefined) return position;
    if (length > MAX_CHAIN) throw specError(location, `$ref "${shortened(target)}" is circular`);
    const found = this.#targets.get(target) ?? this.#find(target, location, length + 1);
    this.#targets.set(target, found);
    return this.#follow(found, location, length + 1);
  }

  #find(target: string, location: string, length: number): Position {
    if (!target.startsWith('#')) {
      throw specError(
        location,
        `$ref "${shortened(target)}" is external, and external references are not fetched; move its target into the document, for example under /components`,
      );
    }
    const fragment = decodeFragment(target.slice(1), location);
    const root = { value: this.#root, isMap: false, isExtension: false };
    if (fragment === '') return root;
    if (!fragment.startsWith('/')) {
      const { anchors } = this.#scan;
      if (anchors.has(fragment)) return { ...root, value: anchors.get(fragment) };
      throw missingTarget(target, location);
    }
    const path = fragment
      .slice(1)
      .split('/')
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
    if (position.isExtension) this.#scan.scanExtension(position.value, path);
    return position;
  }
}

function childOf(
  { value: parent, isMap, isExtension }: Position,
  key: string,
): Position | 'data' | undefined {
  const value = memberOf(parent, key);
  if (value === undefined) return undefined;
  if (isExtension || (!isMap && key.startsWith('x-'))) return { value, isMap: false, isExtension: true };
  if (Array.isArray(parent)) return { value, isMap: false, isExtension };
  return isData(key, value, isMap) ? 'data' : { value, isMap: isMapOfNames(key, isMap), isExtension };
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

function decodeFragment(fragment: string, location: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch (cause) {
    throw specError(location, `$ref "#${shortened(fragment)}" is not valid percent-encoding`, { cause });
  }
}

function missingTarget(target: string, location: string): Error {
  return specError(location, `$ref "${shortened(target)}" has no target in the document`);
}
