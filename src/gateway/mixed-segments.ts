/**
 * The mixed segments (`{id}.json`, `v{major}.{minor}`) that follow one place of the route table, each with what it
 * leads to.
 *
 * Where a segment fits in several ways, each parameter but the last takes as little as possible, from the left:
 * `{name}.{format}` reads `a.tar.gz` as `a` and `tar.gz`.
 */

import { interned } from '../util/text.js';

/** The texts around the parameters of a mixed segment: one more than parameters, the outer ones perhaps empty. */
type Texts = readonly string[];

/** A mixed segment and what it leads to. */
export interface MixedSegment<T> {
  readonly texts: Texts;
  /** The outer ones of the texts. */
  readonly first: string;
  readonly last: string;
  /** Characters of all texts together. */
  readonly literal: number;
  readonly target: T;
}

const NONE: readonly never[] = [];

/** From this number on they are indexed, instead of compared one by one. */
const MANY = 16;

export class MixedSegments<T> {
  /** In the order in which they are tried. */
  readonly #all: MixedSegment<T>[] = [];
  #index: EndIndex<T> | undefined;

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** What these texts lead to. */
  get(texts: Texts): T | undefined {
    const candidates = this.#index?.beside(texts) ?? this.#all;
    return candidates.find((one) => areEqual(one.texts, texts))?.target;
  }

  add(texts: Texts, target: T): void {
    const [first = '', last = ''] = [texts[0], texts.at(-1)];
    const ends = { first: interned(first), last: interned(last) };
    const added = { texts, ...ends, literal: texts.join('').length, target };
    const next = this.#all.findIndex((one) => inOrder(added, one) < 0);
    this.#all.splice(next < 0 ? this.#all.length : next, 0, added);
    if (this.#index) this.#index.add(added);
    else if (this.#all.length >= MANY) this.#index = new EndIndex(this.#all);
  }

  delete(texts: Texts): void {
    const at = this.#all.findIndex((one) => areEqual(one.texts, texts));
    const [deleted] = at < 0 ? [] : this.#all.splice(at, 1);
    if (deleted) this.#index?.delete(deleted);
  }

  /** Those that a decoded segment of a path may fit (`readParameters` says whether it does), in order. */
  candidates(segment: string): readonly MixedSegment<T>[] {
    return this.#index?.candidates(segment) ?? this.#all;
  }
}

/** Adds the values of the parameters to a list; false when the segment of the path does not fit. */
export function readParameters(
  { texts, first, last }: MixedSegment<unknown>,
  segment: string,
  values: string[],
): boolean {
  const end = segment.length - last.length;
  if (first.length >= end || !endsWith(segment, last, end) || !segment.startsWith(first)) return false;
  const had = values.length;
  let at = first.length;
  for (let inner = 1; inner < texts.length - 1; inner++) {
    const text = texts[inner] ?? '';
    // No value is empty.
    const next = segment.indexOf(text, at + 1);
    if (next < 0 || next + text.length >= end) {
      values.length = had;
      return false;
    }
    values.push(segment.slice(at, next));
    at = next + text.length;
  }
  values.push(segment.slice(at, end));
  return true;
}

/** Like `String.endsWith`, which costs more than a character when segments differ only there. */
function endsWith(segment: string, last: string, end: number): boolean {
  if (last === '') return true;
  return segment.charCodeAt(end) === last.charCodeAt(0) && segment.endsWith(last);
}

/** Finds mixed segments by the longer one of their outer texts. */
class EndIndex<T> {
  readonly #tables: EndTable<T>[] = [];

  constructor(all: readonly MixedSegment<T>[]) {
    for (const one of all) this.add(one);
  }

  beside(texts: Texts): readonly MixedSegment<T>[] {
    const { isAtEnd, text } = longerEnd(texts);
    return this.#table(isAtEnd, text.length)?.byText.get(text) ?? [];
  }

  add(added: MixedSegment<T>): void {
    const { isAtEnd, text } = longerEnd(added.texts);
    let table = this.#table(isAtEnd, text.length);
    if (!table) {
      table = { isAtEnd, length: text.length, byText: new Map() };
      this.#tables.push(table);
    }
    table.byText.set(text, [...(table.byText.get(text) ?? []), added]);
  }

  delete(deleted: MixedSegment<T>): void {
    const { isAtEnd, text } = longerEnd(deleted.texts);
    const table = this.#table(isAtEnd, text.length);
    const others = table?.byText.get(text)?.filter((one) => one !== deleted) ?? [];
    if (others.length > 0) table?.byText.set(text, others);
    else table?.byText.delete(text);
    if (table?.byText.size === 0) this.#tables.splice(this.#tables.indexOf(table), 1);
  }

  candidates(segment: string): readonly MixedSegment<T>[] {
    let found: readonly MixedSegment<T>[] = NONE;
    for (const { isAtEnd, length, byText } of this.#tables) {
      const end = isAtEnd ? segment.slice(segment.length - length) : segment.slice(0, length);
      const more = byText.get(end);
      if (more) found = found === NONE ? more : [...found, ...more];
    }
    return found.length > 1 ? [...found].sort(inOrder) : found;
  }

  #table(isAtEnd: boolean, length: number): EndTable<T> | undefined {
    return this.#tables.find((table) => table.isAtEnd === isAtEnd && table.length === length);
  }
}

/** Segments whose longer outer text is the last (or the first) and has this length, by this text. */
interface EndTable<T> {
  readonly isAtEnd: boolean;
  readonly length: number;
  readonly byText: Map<string, readonly MixedSegment<T>[]>;
}

function longerEnd(texts: Texts): { readonly isAtEnd: boolean; readonly text: string } {
  const [first = '', last = ''] = [texts[0], texts.at(-1)];
  return last.length >= first.length ? { isAtEnd: true, text: last } : { isAtEnd: false, text: first };
}

/** The most literal text first, then the longer text at the beginning, then any order that does not change. */
function inOrder(left: MixedSegment<unknown>, right: MixedSegment<unknown>): number {
  const byText = right.literal - left.literal || right.first.length - left.first.length;
  return byText || (left.texts.join('{') < right.texts.join('{') ? -1 : 1);
}

function areEqual(left: Texts, right: Texts): boolean {
  return left.length === right.length && left.every((text, at) => text === right[at]);
}
