/** Keys of what is compiled: equal keys mean that the same comes of it. */
import { createHash } from 'node:crypto';
import type { Dependencies } from './crates.js';
import { type BesideCode, DEFAULT_ENTRY, type FileRef } from './source-files.js';

/** What the key of a handler's source is of. */
export interface KeyedSource extends BesideCode {
  readonly code: string | null;
  readonly dependencies: Dependencies | null;
}

/** sha256, in hex, over a canonical form of all: the order in which keys were written does not matter. */
export function sourceKey({ code, dependencies, edition, entry, files, lock }: KeyedSource): string {
  // The key of a source that says no more is that of earlier versions, so that nothing is compiled again.
  const beside = entry === null && files === null ? [] : [entry ?? DEFAULT_ENTRY, sorted(files ?? {})];
  const isUsual = edition === null && lock === null;
  const more = isUsual ? [] : [{ edition, lock: lock?.digest ?? null }];
  return sha256([code, sorted(dependencies ?? {}), ...beside, ...more]);
}

/** What a build begins with besides its source. */
export interface BuildStart {
  /** The lock whose crates it keeps as far as they fit, where the source has none of its own; null: none. */
  readonly lock: FileRef | null;
  /** Names one request to resolve crates anew, which no other build answers; null: they are not. */
  readonly update: string | null;
}

/** Of a build that has nothing but its source. */
export const FROM_SOURCE: BuildStart = { lock: null, update: null };

/** The key of a source, and of what a build of it begins with. */
export function buildKey(source: string, { lock, update }: BuildStart): string {
  return lock === null && update === null ? source : sha256([source, lock?.digest ?? null, update]);
}

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // Pairs, not an object: a key that looks like a number would not keep its place.
  return Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
