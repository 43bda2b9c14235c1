/** Which files of a bundle are the handlers of its operations, and which are modules of others. */
import { beside, modulesOf, placesOf } from '../../model/source-finder.js';
import type { ArchiveFile } from './archive.js';
import { baseOf, type HandlerFiles, handlerFiles } from './handler-files.js';
import type { KnownReferences } from './known-references.js';
import { type Assignment, assignHandlers, normalizeName } from './match-handlers.js';
import type { PlannedOperation } from './plan-operations.js';

export interface FoundHandlers extends HandlerFiles, Assignment {}

/**
 * Names and folders say which files are handlers, also where others, such as tests, have these as modules. Only where
 * that is not clear, all Rust is looked through, and modules are left out.
 * @param limit larger files are not looked through, bytes
 */
export async function findHandlers(
  planned: readonly PlannedOperation[],
  sources: readonly ArchiveFile[],
  limit: number,
  references: KnownReferences,
): Promise<FoundHandlers> {
  const all = foundAmong(planned, sources);
  const isClear = all.problems.length === 0 && (all.handlerOf.size > 0 || all.unread.size === 0);
  if (isClear) return all;
  const modules = await modulesAmong(planned, sources, limit, references);
  const others = foundAmong(
    planned,
    sources.filter((file) => !modules.has(file)),
  );
  // Files that name each other in a circle are no modules of a handler.
  if (others.handlers.length === 0) return all;
  const unread = [...modules].map(({ path }) => [path, 'no handler has it as a module'] as const);
  return { ...others, unread: new Map([...others.unread, ...unread]) };
}

function foundAmong(planned: readonly PlannedOperation[], sources: readonly ArchiveFile[]): FoundHandlers {
  const files = handlerFiles(sources);
  return { ...files, ...assignHandlers(planned, files.handlers) };
}

/** Files that others name, without those that are handlers by their names all the same. */
async function modulesAmong(
  planned: readonly PlannedOperation[],
  sources: readonly ArchiveFile[],
  limit: number,
  references: KnownReferences,
): Promise<ReadonlySet<ArchiveFile>> {
  const named = await namedFiles(sources, limit, references);
  const operationIds = planned.flatMap(({ operation, route }) =>
    route ? [] : (operation.operationId ?? []),
  );
  const exact = new Set([...operationIds, ...planned.flatMap(({ route }) => route?.handler ?? [])]);
  const alike = new Set(operationIds.map(normalizeName));
  // A module with a name like that of the handler which has it is none.
  const taken = new Set(sources.filter((file) => !named.has(file.path)).map((file) => nameOf(file)));
  const isHandler = (file: ArchiveFile) =>
    exact.has(baseOf(file)) || (alike.has(nameOf(file)) && !taken.has(nameOf(file)));
  return new Set(sources.filter((file) => named.has(file.path) && !isHandler(file)));
}

function nameOf(file: ArchiveFile): string {
  return normalizeName(baseOf(file));
}

/** Paths of files that others name. Each file may be the code of a handler, or a module that has its own elsewhere. */
async function namedFiles(
  sources: readonly ArchiveFile[],
  limit: number,
  references: KnownReferences,
): Promise<ReadonlySet<string>> {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const named = new Set<string>();
  const visits = sources.map(({ path }) => beside(path));
  const seen = new Set(visits.map((visit) => JSON.stringify(visit)));
  for (const { path, modules } of visits) {
    const file = byPath.get(path);
    if (!file || file.size > limit) continue;
    const content = await references.read(file);
    const its = modulesOf(content, modules);
    for (const reference of content.references)
      for (const place of placesOf(path, reference, its)) {
        if (place.path === path || !byPath.has(place.path)) continue;
        named.add(place.path);
        const visit = JSON.stringify(place);
        if (reference.kind === 'data' || seen.has(visit)) continue;
        seen.add(visit);
        visits.push(place);
      }
  }
  return named;
}
