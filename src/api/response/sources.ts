/** Sources as answers show them. */
import {
  type BesideCode,
  contentOf,
  DEFAULT_EDITION,
  DEFAULT_ENTRY,
  type HandlerSource,
} from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { readLock, readSourceFiles } from '../../store/source-files.js';

/** What a source has beside its code, with the contents of its files. */
export async function sourceWithContents(store: Store, source: BesideCode) {
  const contents = [...(await readSourceFiles(store, source.files))];
  const shown = contents.map(([path, bytes]) => [path, contentOf(bytes)] as const);
  const lock = source.lock && (await readLock(store, source.lock));
  return { ...named(source), files: Object.fromEntries(inOrder(shown)), lock };
}

/** The same with the digests of its files and its lock. */
export function sourceWithDigests(source: BesideCode) {
  const files = Object.fromEntries(inOrder(Object.entries(source.files ?? {})));
  return { ...named(source), files, lock: source.lock };
}

function named({ edition, entry }: Pick<HandlerSource, 'edition' | 'entry'>) {
  return { edition: edition ?? DEFAULT_EDITION, entry: entry ?? DEFAULT_ENTRY };
}

/** PostgreSQL has an order of its own. */
function inOrder<T>(entries: readonly (readonly [string, T])[]): readonly (readonly [string, T])[] {
  return entries.toSorted(([left], [right]) => (left < right ? -1 : 1));
}
