/** The files of sources as requests bring them. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import {
  bytesOf,
  DEFAULT_ENTRY,
  type FileContents,
  fileRefs,
  filesProblem,
  normalEntry,
  requireSource,
  type SourceFiles,
} from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { keepSourceFiles } from '../../store/source-files.js';

/** The files of a request; what is left out stays as it is. */
interface GivenFiles {
  readonly entry?: string | null;
  readonly files?: FileContents | null;
}

interface FilesDependencies {
  readonly store: Store;
  readonly config: Pick<Config, 'API_BODY_LIMIT_BYTES' | 'SOURCE_FILES_LIMIT'>;
}

/**
 * Checks files of a request, and stores their contents.
 * @param stored finds what the endpoint has; it is asked for when the request has something of a source
 * @returns the request with its files as endpoints have them
 * @throws AppError invalid_input, and those of `stored`, before anything is stored
 */
export async function admitFiles<R extends GivenFiles>(
  { entry, files, ...others }: R,
  { store, config }: FilesDependencies,
  stored: () => Promise<SourceFiles>,
): Promise<Omit<R, keyof SourceFiles> & Partial<SourceFiles>> {
  if (entry === undefined && files === undefined) return others;
  const before = await stored();
  const admitted = { ...others, ...(entry !== undefined && { entry: normalEntry(entry) }) };
  if (files === undefined) {
    requireSource({ ...before, ...admitted }, config.SOURCE_FILES_LIMIT);
    return admitted;
  }
  const beside = new Map(Object.entries(files ?? {}).map(([path, content]) => [path, bytesOf(content)]));
  const limits = { files: config.SOURCE_FILES_LIMIT, bytes: config.API_BODY_LIMIT_BYTES };
  const code = (entry === undefined ? before.entry : entry) ?? DEFAULT_ENTRY;
  const problem = filesProblem(beside, code, limits);
  if (problem !== undefined) throw new AppError('invalid_input', `body.files: ${problem}`);
  const contents = new Map<string, Uint8Array>();
  const whole = { ...admitted, files: fileRefs(beside, contents) };
  await keepSourceFiles(store, contents);
  return whole;
}
