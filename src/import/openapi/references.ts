/** Follows `$ref`s within the document. There are no others: nothing is ever fetched or read from disk. */
import { isObject, type JsonObject, own, shortened, specError } from './json.js';
import type { Survey } from './survey.js';

/** How many references a chain may have, those on the way of a pointer included. */
const MAX_CHAIN = 100;

export class References {
  private readonly targets = new Map<string, unknown>();

  /** @throws AppError invalid_spec for a reference that leads out of the document, to nowhere or to itself */
  constructor(
    private readonly root: unknown,
    private readonly surveyed: Survey,
  ) {
    const checked = new Set<string>();
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
    return this.follow(value, place, 0);
  }

  private follow(value: unknown, place: string, length: number): unknown {
    const target = referenceOf(value);
    if (target === undefined) return value;
    if (length > MAX_CHAIN) {
      throw specError(place, `$ref "${shortened(target)}" leads back to itself, so it stands for nothing`);
    }
    if (!this.targets.has(target)) this.targets.set(target, this.find(target, place, length + 1));
    return this.follow(this.targets.get(target), place, length + 1);
  }

  private find(target: string, place: string, length: number): unknown {
    if (!target.startsWith('#')) {
      throw specError(
        place,
        `$ref "${shortened(target)}" leads out of the document, and nothing is fetched; put what it refers to into the document, for example under /components`,
      );
    }
    const fragment = decoded(target.slice(1), place);
    if (fragment === '') return this.root;
    if (!fragment.startsWith('/')) {
      const { anchors } = this.surveyed;
      if (anchors.has(fragment)) return anchors.get(fragment);
      throw nowhere(target, place);
    }
    let value = this.root;
    for (const part of fragment.slice(1).split('/')) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      // A pointer may lead through another reference.
      const next = memberOf(value, key) ?? memberOf(this.follow(value, place, length), key);
      if (next === undefined) throw nowhere(target, place);
      value = next;
    }
    return value;
  }
}

/** The target of a value that is a reference. */
export function referenceOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const target = own(value, '$ref');
  return typeof target === 'string' ? target : undefined;
}

/**
 * An object with its `$ref` followed, one by one: members beside a `$ref` come before those of what it refers to.
 * Path items may have them, and so may schemas since 3.1.
 */
export function withSiblings(references: References, value: JsonObject, place: string): JsonObject {
  if (referenceOf(value) === undefined) return value;
  const target = references.resolve(value, place);
  const { $ref: _followed, ...siblings } = value;
  return isObject(target) ? { ...target, ...siblings } : siblings;
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
