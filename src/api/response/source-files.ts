/** The files of sources as answers show them. */
import { contentOf, DEFAULT_ENTRY, type SourceFiles } from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { readSourceFiles } from '../../store/source-files.js';

/** The files of a source with their contents. */
export async function filesWithContents(store: Store, { entry, files }: SourceFiles) {
  const contents = [...(await readSourceFiles(store, files))];
  const shown = contents.map(([path, bytes]) => [path, contentOf(bytes)] as const);
  return { entry: entry ?? DEFAULT_ENTRY, files: Object.fromEntries(inOrder(shown)) };
}

/** The files of a source with their digests. */
export function filesWithDigests({ entry, files }: SourceFiles) {
  return { entry: entry ?? DEFAULT_ENTRY, files: Object.fromEntries(inOrder(Object.entries(files ?? {}))) };
}

/** PostgreSQL has an order of its own. */
function inOrder<T>(entries: readonly (readonly [string, T])[]): readonly (readonly [string, T])[] {
  return entries.toSorted(([left], [right]) => (left < right ? -1 : 1));
}
