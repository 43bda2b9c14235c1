/** The differences of two versions, as a patch. */
import { isUtf8 } from 'node:buffer';
import { AppError } from '../../errors.js';
import { DEFAULT_ENTRY, type FileRefs } from '../../model/source-files.js';
import type { Store } from '../../store/database.js';
import { readSourceFiles } from '../../store/source-files.js';
import type { EndpointVersion } from '../../store/versions.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** Sources that differ so much that their diff takes longer than this are not compared, milliseconds. */
const DIFF_TIMEOUT_MS = 1_000;

interface DiffDependencies {
  readonly store: Store;
  readonly threads: ApiDependencies['threads'];
  /** Whose turn it takes. */
  readonly owner: string;
}

/**
 * The differences of the code, of the files beside it, and of the dependencies as JSON. Empty where nothing differs.
 * @throws AppError invalid_input when the versions differ too much
 */
export async function diffOf(
  { store, threads, owner }: DiffDependencies,
  from: EndpointVersion,
  to: EndpointVersion,
): Promise<string> {
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
  const entries = [from, to].map(({ entry }) => entry ?? DEFAULT_ENTRY);
  const [before = '', after = ''] = entries;
  let diff = before === after ? '' : `The code is ${before} in ${names[0]}, and ${after} in ${names[1]}.\n`;
  diff += await patch(after, from.code, to.code);
  for (const path of differingFiles(from.files ?? {}, to.files ?? {})) {
    const [old, next] = [await contentOf(store, from.files, path), await contentOf(store, to.files, path)];
    diff +=
      isUtf8(old) && isUtf8(next) ? await patch(path, `${old}`, `${next}`) : `Binary file ${path} differs.\n`;
  }
  return diff + (await patch('dependencies.json', json(from), json(to)));
}

function differingFiles(from: FileRefs, to: FileRefs): string[] {
  const paths = new Set([...Object.keys(from), ...Object.keys(to)]);
  return [...paths].filter((path) => refOf(from, path)?.digest !== refOf(to, path)?.digest).sort();
}

/** A path may be the name of what all objects have. */
function refOf(files: FileRefs, path: string): FileRefs[string] | undefined {
  return Object.hasOwn(files, path) ? files[path] : undefined;
}

/** Empty where there is no such file. */
async function contentOf(store: Store, files: FileRefs | null, path: string): Promise<Buffer> {
  const ref = refOf(files ?? {}, path);
  if (!ref) return Buffer.alloc(0);
  return (await readSourceFiles(store, { [path]: ref })).get(path) ?? Buffer.alloc(0);
}

function json({ dependencies }: EndpointVersion): string {
  return `${JSON.stringify(dependencies, null, 2)}\n`;
}
