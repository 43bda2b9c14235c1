/** The key of a handler's source: equal keys mean equal code and dependencies. */
import { createHash } from 'node:crypto';
import type { Dependencies } from './crates.js';

/** sha256, in hex, over a canonical form of both: the order in which keys were written does not matter. */
export function sourceKey(code: string | null, dependencies: Dependencies | null): string {
  return createHash('sha256')
    .update(JSON.stringify([code, sorted(dependencies ?? {})]))
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // Pairs, not an object: a key that looks like a number would not keep its place.
  return Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
