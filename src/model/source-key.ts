/** The key of a handler's source: equal keys mean equal code, files and dependencies. */
import { createHash } from 'node:crypto';
import type { Dependencies } from './crates.js';
import { DEFAULT_ENTRY, type FileRefs } from './source-files.js';

/** What the key is of. */
export interface KeyedSource {
  readonly code: string | null;
  readonly dependencies: Dependencies | null;
  readonly entry: string | null;
  readonly files: FileRefs | null;
}

/** sha256, in hex, over a canonical form of all: the order in which keys were written does not matter. */
export function sourceKey({ code, dependencies, entry, files }: KeyedSource): string {
  // The key of a source that is one file is that of earlier versions, so that nothing is compiled again.
  const beside = entry === null && files === null ? [] : [entry ?? DEFAULT_ENTRY, sorted(files ?? {})];
  return createHash('sha256')
    .update(JSON.stringify([code, sorted(dependencies ?? {}), ...beside]))
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // Pairs, not an object: a key that looks like a number would not keep its place.
  return Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
