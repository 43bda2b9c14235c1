/** The differences of two versions, as a patch. */
import { AppError } from '../../errors.js';
import { type ChangedCrate, changedCrates } from '../../model/cargo-lock.js';
import { changedPaths, DEFAULT_EDITION, DEFAULT_ENTRY, filesAt } from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { readLock, readSourceFiles } from '../../store/source-files.js';
import type { EndpointVersion } from '../../store/versions.js';
import { isText } from '../../util/text.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** Sources that differ so much that their diff takes longer than this are not compared, milliseconds. */
const DIFF_TIMEOUT_MS = 1_000;

interface DiffDependencies {
  readonly store: Store;
  readonly threads: ApiDependencies['threads'];
  /** Whose turn it takes. */
  readonly owner: string;
}

/** What differs between two versions. */
interface VersionDifferences {
  /** Code, files, edition and dependencies as a patch, and crates. Empty where nothing differs. */
  readonly diff: string;
  readonly crates: ChangedCrate[];
}

/** @throws AppError invalid_input when the versions differ too much */
export async function diffOf(
  { store, threads, owner }: DiffDependencies,
  from: EndpointVersion,
  to: EndpointVersion,
): Promise<VersionDifferences> {
  const names = [`version ${from.version}`, `version ${to.version}`] as const;
  let left = DIFF_TIMEOUT_MS;
  const patch = async (file: string, before: string, after: string) => {
    if (before === after) return '';
    const began = performance.now();
    const text = await threads.run(owner, 'patch', {
      file,
      names,
      before,
      after,
      timeoutMs: Math.max(1, left),
    });
    left -= performance.now() - began;
    if (text !== undefined) return text;
    throw new AppError(
      'invalid_input',
      `The versions ${from.version} and ${to.version} differ too much to be compared; read the code of both.`,
    );
  };
  const [before, after] = [from.entry ?? DEFAULT_ENTRY, to.entry ?? DEFAULT_ENTRY];
  let diff = before === after ? '' : `The code is ${before} in ${names[0]}, and ${after} in ${names[1]}.\n`;
  const [older, newer] = [from.edition ?? DEFAULT_EDITION, to.edition ?? DEFAULT_EDITION];
  if (older !== newer) diff += `The edition is ${older} in ${names[0]}, and ${newer} in ${names[1]}.\n`;
  diff += await patch(after, from.code, to.code);
  const paths = changedPaths(from.files, to.files);
  const olds = await readSourceFiles(store, filesAt(from.files, paths));
  const news = await readSourceFiles(store, filesAt(to.files, paths));
  for (const path of paths) {
    const [old, next] = [olds.get(path), news.get(path)];
    if (!old || !next) diff += `The file ${path} is only in ${names[old ? 0 : 1]}.\n`;
    if ([old, next].every((content) => !content || isText(content)))
      diff += await patch(path, `${old ?? ''}`, `${next ?? ''}`);
    else if (old && next) diff += `The file ${path} is binary, and differs.\n`;
  }
  diff += await patch('dependencies.json', json(from), json(to));
  const crates = await cratesOf(store, from, to);
  return { diff: diff + crates.map((crate) => sentenceOf(crate, names)).join(''), crates };
}

/** The crates that differ; none where the lock of one is not known. */
async function cratesOf(store: Store, from: EndpointVersion, to: EndpointVersion): Promise<ChangedCrate[]> {
  const [before, after] = [from.lock ?? from.resolved_lock, to.lock ?? to.resolved_lock];
  if (!before || !after || before.digest === after.digest) return [];
  return changedCrates(await readLock(store, before), await readLock(store, after));
}

function sentenceOf({ name, from, to }: ChangedCrate, [before, after]: readonly [string, string]): string {
  if (from !== null && to !== null)
    return `The crate ${name} is ${from} in ${before}, and ${to} in ${after}.\n`;
  return `The crate ${name} ${from ?? to} is only in ${from === null ? after : before}.\n`;
}

function json({ dependencies }: EndpointVersion): string {
  return `${JSON.stringify(dependencies, null, 2)}\n`;
}
