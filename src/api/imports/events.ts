/** The progress of an import as server-sent events, read from the database: clients may connect late and reconnect. */
import { countHandlers, handlersOf } from '../../store/import-handlers.js';
import { findImport, importProgress } from '../../store/imports.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { event, KEEPALIVE, KEEPALIVE_MS } from '../event-stream.js';
import { presentHandler, presentResult } from './present.js';
import type { ProgressEvent } from './schema.js';

/** The events of an import after a version of it. The last one is `done`. */
export async function* importEvents(
  { store, changes }: ApiDependencies,
  id: string,
  after: number,
  closed: AbortSignal,
): AsyncGenerator<string, undefined, void> {
  let seen = after;
  for (;;) {
    const read = async () => {
      const current = await importProgress(store, id);
      if (!current) throw new Error(`The import ${id} was deleted`);
      return current.version > seen || current.finished_at ? current : undefined;
    };
    const current = await changes.waitFor('import', id, KEEPALIVE_MS, read, closed);
    if (!current) {
      yield KEEPALIVE;
      continue;
    }
    const [counts, handlers] = await Promise.all([countHandlers(store, id), handlersOf(store, id, seen)]);
    const progress: ProgressEvent = { state: current.state, counts, handlers: handlers.map(presentHandler) };
    yield event('progress', current.version, progress);
    seen = current.version;
    if (!current.finished_at) continue;
    const imported = await findImport(store, id);
    if (!imported) throw new Error(`The import ${id} was deleted`);
    const result = presentResult(imported, await handlersOf(store, id));
    yield event('done', seen, { state: imported.state, result });
    return undefined;
  }
}
