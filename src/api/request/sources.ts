/** The sources of requests: what they say beside the code. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import { hasLocalCrates, requireCrateSources } from '../../model/crate-sources.js';
import type { Dependencies } from '../../model/crates.js';
import {
  type BesideCode,
  bytesOf,
  DEFAULT_ENTRY,
  type Edition,
  type FileContents,
  fileRef,
  fileRefs,
  filesProblem,
  normalEdition,
  normalEntry,
  requireSource,
  type SourceFiles,
} from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { keepSourceFiles } from '../../store/source-files.js';

/** What a request may say of a source; what is left out stays as it is. */
interface GivenSource {
  readonly dependencies?: Dependencies | null;
  readonly edition?: Edition | null;
  readonly entry?: string | null;
  readonly files?: FileContents | null;
  readonly lock?: string | null;
}

/** What an endpoint has of a source. */
type StoredSource = SourceFiles & { readonly dependencies: Dependencies | null };

/** Of an endpoint that is not there yet. */
export const NOTHING_BESIDE: StoredSource = { entry: null, files: null, dependencies: null };

interface SourceDependencies {
  readonly store: Store;
  readonly config: Pick<Config, 'API_BODY_LIMIT_BYTES' | 'CARGO_SOURCES' | 'SOURCE_FILES_LIMIT'>;
}

/**
 * Checks the source of a request, and stores the contents of its files and its lock.
 * @param stored finds what the endpoint has; it is asked for when something depends on it, or is to be stored
 * @returns the request with its source as endpoints have it
 * @throws AppError invalid_input, invalid_dependency, and those of `stored`, before anything is stored
 */
export async function admitSource<R extends GivenSource>(
  given: R,
  { store, config }: SourceDependencies,
  stored: () => Promise<StoredSource>,
): Promise<Omit<R, keyof BesideCode> & Partial<BesideCode>> {
  const { edition, entry, files, lock, ...others } = given;
  const { dependencies }: GivenSource = given;
  const contents = new Map<string, Uint8Array>();
  const admitted: Omit<R, keyof BesideCode> & Partial<BesideCode> = {
    ...others,
    ...(edition !== undefined && { edition: normalEdition(edition) }),
    ...(lock !== undefined && { lock: lock === null ? null : fileRef(Buffer.from(lock), contents) }),
    ...(entry !== undefined && { entry: normalEntry(entry) }),
  };
  const isAlone = entry === undefined && files === undefined && !lock && !hasLocalCrates(dependencies);
  const before = isAlone ? NOTHING_BESIDE : await stored();
  const requireCrates = (present: SourceFiles['files']) => {
    const crates = dependencies === undefined ? before.dependencies : dependencies;
    if (dependencies !== undefined || files !== undefined)
      requireCrateSources('body.dependencies', crates, { files: present, allowed: config.CARGO_SOURCES });
  };
  if (files === undefined) {
    if (entry !== undefined) requireSource({ ...before, ...admitted }, config.SOURCE_FILES_LIMIT);
    requireCrates(before.files);
    await keepSourceFiles(store, contents);
    return admitted;
  }
  const beside = new Map(Object.entries(files ?? {}).map(([path, content]) => [path, bytesOf(content)]));
  const limits = { files: config.SOURCE_FILES_LIMIT, bytes: config.API_BODY_LIMIT_BYTES };
  const code = (entry === undefined ? before.entry : entry) ?? DEFAULT_ENTRY;
  const problem = filesProblem(beside, code, limits);
  if (problem !== undefined) throw new AppError('invalid_input', `body.files: ${problem}`);
  const whole = { ...admitted, files: fileRefs(beside, contents) };
  requireCrates(whole.files);
  await keepSourceFiles(store, contents);
  return whole;
}
