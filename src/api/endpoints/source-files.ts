/** The files of sources as requests bring them and answers show them. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import {
  bytesOf,
  contentOf,
  contentProblem,
  DEFAULT_ENTRY,
  type FileContents,
  fileRefs,
  type HandlerSource,
  normalEntry,
  requireSource,
} from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { keepSourceFiles, readSourceFiles } from '../../store/source-files.js';

/** The files of a request; what is left out stays as it is. */
interface GivenFiles {
  readonly entry?: string | null;
  readonly files?: FileContents | null;
}

type StoredFiles = Pick<HandlerSource, 'entry' | 'files'>;

interface FilesDependencies {
  readonly store: Store;
  readonly config: Pick<Config, 'SOURCE_FILES_LIMIT'>;
}

/**
 * Checks files of a request, and stores their contents.
 * @returns the request with its files as endpoints have them
 * @throws AppError invalid_input, before anything is stored
 */
export async function admitFiles<R extends GivenFiles>(
  { entry, files, ...others }: R,
  { store, config }: FilesDependencies,
): Promise<Omit<R, keyof StoredFiles> & Partial<StoredFiles>> {
  const admitted = { ...others, ...(entry !== undefined && { entry: normalEntry(entry) }) };
  if (files === undefined) return admitted;
  const beside = new Map(Object.entries(files ?? {}).map(([path, content]) => [path, bytesOf(content)]));
  if (beside.size > config.SOURCE_FILES_LIMIT)
    throw invalid(
      `has ${beside.size} files; at most ${config.SOURCE_FILES_LIMIT} are allowed (SOURCE_FILES_LIMIT)`,
    );
  for (const [path, bytes] of beside) {
    const problem = contentProblem(path, bytes);
    if (problem !== undefined) throw invalid(`"${path}" ${problem}`);
  }
  const contents = new Map<string, Uint8Array>();
  const whole = { ...admitted, files: fileRefs(beside, contents) };
  requireSource({ entry: null, ...whole });
  await keepSourceFiles(store, contents);
  return whole;
}

/** The files of a source with their contents. */
export async function filesWithContents(store: Store, { entry, files }: StoredFiles) {
  const contents = [...(await readSourceFiles(store, files))];
  const shown = contents.map(([path, bytes]) => [path, contentOf(bytes)] as const);
  return { entry: entry ?? DEFAULT_ENTRY, files: Object.fromEntries(inOrder(shown)) };
}

/** The files of a source with their digests. */
export function filesWithDigests({ entry, files }: StoredFiles) {
  return { entry: entry ?? DEFAULT_ENTRY, files: Object.fromEntries(inOrder(Object.entries(files ?? {}))) };
}

/** PostgreSQL has an order of its own. */
function inOrder<T>(entries: readonly (readonly [string, T])[]): readonly (readonly [string, T])[] {
  return entries.toSorted(([left], [right]) => (left < right ? -1 : 1));
}

function invalid(message: string): AppError {
  return new AppError('invalid_input', `body.files: ${message}`);
}
