/** Reads the handlers of a bundle, with the files beside them that they name: modules, templates and their like. */

import { isRust } from '../../model/file-paths.js';
import type { ImportedHandler } from '../../model/imported-parts.js';
import { fileRefs, filesProblem, normalEntry } from '../../model/source-files.js';
import { findFiles } from '../../model/source-finder.js';
import type { ImportLimits } from '../limits.js';
import { readOnce, readText } from './archive.js';
import type { Contents } from './contents.js';
import { bundleError } from './errors.js';
import type { HandlerFile } from './handler-files.js';
import type { KnownReferences } from './known-references.js';

export interface ReadHandlers {
  readonly sources: ReadonlyMap<HandlerFile, ImportedHandler>;
  /** Paths of files of Rust that handlers have beside their code. */
  readonly modules: ReadonlySet<string>;
  /** Contents of files of handlers, by their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/**
 * Reads all handlers, so that damaged ones are reported; keeps only those that are used.
 * @throws AppError invalid_bundle, body_too_large
 */
export async function readHandlers(
  handlers: readonly HandlerFile[],
  used: ReadonlySet<HandlerFile>,
  { files }: Pick<Contents, 'files'>,
  references: KnownReferences,
  limits: Pick<ImportLimits, 'codeBytes' | 'sourceFiles'>,
): Promise<ReadHandlers> {
  const sources = new Map<HandlerFile, ImportedHandler>();
  const modules = new Set<string>();
  const contents = new Map<string, Uint8Array>();
  const read = readOnce((path) => files.get(path)?.read());
  for (const handler of handlers) {
    const code = await readText(handler, limits.codeBytes, 'API_BODY_LIMIT_BYTES');
    if (!used.has(handler)) continue;
    const { path } = handler;
    const found = await findFiles(path, code, read, references.of);
    if (found.problems.length > 0) throw bundleError(found.problems.join('\n'));
    const problem = filesProblem(found.files, path, { files: limits.sourceFiles, bytes: limits.codeBytes });
    if (problem !== undefined) throw bundleError(`${path}: ${problem}.`);
    for (const file of found.files.keys()) if (isRust(file)) modules.add(file);
    const refs = fileRefs(found.files, contents);
    const entry = refs === null ? null : normalEntry(path);
    sources.set(handler, { file: path, code, entry, files: refs });
  }
  return { sources, modules, contents };
}
