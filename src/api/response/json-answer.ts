/** JSON of answers that may be large: it is written in parts, between which the event loop serves others. */
import { setImmediate } from 'node:timers/promises';
import { stringifyChunked } from '@discoveryjs/json-ext';

/** Characters of a part. */
const PART = 64 * 1024;
/** So long parts are written at a time, milliseconds. */
const AT_A_TIME_MS = 5;
/** Lists of so many are written at once. */
const FEW = 50;

/** Whether an answer may take long to be written. */
export function mayBeLarge(data: unknown): boolean {
  return Array.isArray(data) && data.length > FEW;
}

/** UTF-8. */
export async function jsonInParts(answer: unknown): Promise<Buffer> {
  const parts: Buffer[] = [];
  let began = performance.now();
  for (const part of stringifyChunked(answer, { highWaterMark: PART })) {
    parts.push(Buffer.from(part));
    if (performance.now() - began < AT_A_TIME_MS) continue;
    await setImmediate();
    began = performance.now();
  }
  return Buffer.concat(parts);
}
