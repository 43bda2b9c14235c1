/**
 * Pauses of long work, in which the event loop does other tasks. Of several that pause, one goes on in each turn of the
 * loop: others do not wait for all of them.
 */
import { parseChunked } from '@discoveryjs/json-ext';
import { piecesOfJson } from './json-text.js';

/** Work is not interrupted for so long, milliseconds. */
const AT_A_TIME_MS = 5;
/** Characters of JSON that are made at once, which takes some milliseconds. */
const AT_ONCE = 512 * 1024;
/** Characters of a part of JSON, at least. */
const PART = 64 * 1024;

export class Pauses {
  #since = performance.now();

  /** To be awaited wherever the work can be interrupted: it is when that has taken long. */
  async here(): Promise<void> {
    if (performance.now() - this.#since < AT_A_TIME_MS) return;
    await nextTurn();
    this.#since = performance.now();
  }
}

/** Like `map` of an array, with pauses. */
export async function mapInParts<T, R>(items: readonly T[], map: (item: T) => R | Promise<R>): Promise<R[]> {
  const mapped: R[] = [];
  const pauses = new Pauses();
  for (const item of items) {
    mapped.push(await map(item));
    await pauses.here();
  }
  return mapped;
}

const paused: (() => void)[] = [];

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (paused.push(resolve) === 1) setImmediate(resumeOne);
  });
}

function resumeOne(): void {
  paused.shift()?.();
  if (paused.length > 0) setImmediate(resumeOne);
}

/** JSON of what may be large, with pauses. UTF-8. */
export async function jsonInParts(value: unknown): Promise<Buffer> {
  return Buffer.concat(await partsOfJson(value));
}

/** The same, not put together, which takes long where it is very large. */
export async function partsOfJson(value: unknown): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  for await (const part of eachPartOfJson(value)) parts.push(Buffer.from(part));
  return parts;
}

/** The same, one after the other, as text. */
export async function* eachPartOfJson(value: unknown): AsyncGenerator<string, void, void> {
  const pauses = new Pauses();
  let text = '';
  for (const piece of piecesOfJson(value, AT_ONCE)) {
    text += piece;
    if (text.length < PART) continue;
    yield text;
    text = '';
    await pauses.here();
  }
  if (text !== '') yield text;
}

/** What is in a stream of JSON that may be large, read with pauses. Rejects when it is none, or with the stream. */
export async function parsedInParts(content: AsyncIterable<Buffer>): Promise<unknown> {
  const pauses = new Pauses();
  async function* pieces() {
    for await (const piece of content) {
      yield piece;
      await pauses.here();
    }
  }
  return parseChunked(pieces);
}
