/**
 * Pauses of long work, in which the event loop does other tasks. Of several that pause, one goes on in each turn of the
 * loop: others do not wait for all of them.
 */
import { parseChunked, stringifyChunked } from '@discoveryjs/json-ext';

/** Work is not interrupted for so long, milliseconds. */
const AT_A_TIME_MS = 5;
/** Characters of a part of JSON. */
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
  const pauses = new Pauses();
  for (const part of stringifyChunked(value, { highWaterMark: PART })) {
    parts.push(Buffer.from(part));
    await pauses.here();
  }
  return parts;
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
