/** Follows `$ref`s within the document. There are no others: nothing is ever fetched or read from disk. */
import { isObject, own, shortened, specError } from './json.js';
import { isData, isMapOfNames, type Survey } from './survey.js';

/** How many references a chain may have, those on the way of a pointer included. */
const MAX_CHAIN = 100;

/** A value, and what its place makes of the names of its members. */
interface Position {
  readonly value: unknown;
  /** Its members have names of the author's choice. */
  readonly isMap: boolean;
  /** It stands in an extension, where all names are the author's. */
  readonly isExtension: boolean;
}

export class References {
  private readonly targets = new Map<string, Position>();

  /** @throws AppError invalid_spec for a reference that leads out of the document, into data, to nowhere or to itself */
  constructor(
    private readonly root: unknown,
    private readonly surveyed: Survey,
  ) {
    const checked = new Set<string>();
    // What they lead to may add some.
    for (const { target, place } of surveyed.references) {
      if (checked.has(target)) continue;
      this.resolve({ $ref: target }, place);
      checked.add(target);
    }
  }

  /**
   * What a value stands for: itself, or what its `$ref` leads to.
   * @param place where it stands, for the message
   * @throws AppError invalid_spec
   */
  resolve(value: unknown, place: string): unknown {
    return this.follow({ value, isMap: false, isExtension: false }, place, 0).value;
  }

  /** Whether a reference has led to this value in an extension. */
  isInExtension(value: unknown): boolean {
    return this.surveyed.isIncluded(value);
  }

  private follow(position: Position, place: string, length: number): Position {
    const target = referenceOf(position.value);
    if (target === undefined) return position;
    if (length > MAX_CHAIN) {
      throw specError(place, `$ref "${shortened(target)}" leads back to itself, so it stands for nothing`);
    }
    const found = this.targets.get(target) ?? this.find(target, place, length + 1);
    this.targets.set(target, found);
    return this.follow(found, place, length + 1);
  }

  private find(target: string, place: string, length: number): Position {
    if (!target.startsWith('#')) {
      throw specError(
        place,
        `$ref "${shortened(target)}" leads out of the document, and nothing is fetched; put what it refers to into the document, for example under /components`,
      );
    }
    const fragment = decoded(target.slice(1), place);
    const root = { value: this.root, isMap: false, isExtension: false };
    if (fragment === '') return root;
    if (!fragment.startsWith('/')) {
      const { anchors } = this.surveyed;
      if (anchors.has(fragment)) return { ...root, value: anchors.get(fragment) };
      throw nowhere(target, place);
    }
    const path = fragment
      .slice(1)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    let position: Position = root;
    for (const key of path) {
      // A pointer may lead through another reference.
      const next = memberAt(position, key) ?? memberAt(this.follow(position, place, length), key);
      if (next === undefined) throw nowhere(target, place);
      if (next === 'data') {
        throw specError(
          place,
          `$ref "${shortened(target)}" leads into "${key}", which is data; put what it refers to under /components`,
        );
      }
      position = next;
    }
    if (position.isExtension) this.surveyed.include(position.value, path);
    return position;
  }
}

function memberAt(
  { value: holder, isMap, isExtension }: Position,
  key: string,
): Position | 'data' | undefined {
  const value = memberOf(holder, key);
  if (value === undefined) return undefined;
  if (isExtension || (!isMap && key.startsWith('x-'))) return { value, isMap: false, isExtension: true };
  if (Array.isArray(holder)) return { value, isMap: false, isExtension };
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

function decoded(fragment: string, place: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch (cause) {
    throw specError(place, `$ref "#${shortened(fragment)}" is not valid percent-encoding`, { cause });
  }
}

function nowhere(target: string, place: string): Error {
  return specError(place, `$ref "${shortened(target)}" leads to nothing in the document`);
}
