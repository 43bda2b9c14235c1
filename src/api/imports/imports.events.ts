/** The progress of an import: which of its handlers have changed, the crates they wait for, and at last its result. */
import { requireFound } from '../../errors.js';
import { cratesOfImport } from '../../store/build-crates.js';
import type { Store } from '../../store/database.js';
import { countHandlers, handlersOf } from '../../store/import-handlers.js';
import { findImport, type Import, importProgress } from '../../store/imports.js';
import type { ProgressSource } from '../response/progress-events.js';
import { presentHandler, presentResult } from './imports.present.js';
import type { ProgressEvent } from './imports.schema.js';

type ImportProgress = Pick<Import, 'state' | 'version' | 'finished_at'>;

export function importSource(store: Store, id: string): ProgressSource<ImportProgress> {
  return {
    ...{ topic: 'import', id },
    read: async () => requireFound(await importProgress(store, id), 'import', id),
    progressOf: async ({ state }, after): Promise<ProgressEvent> => {
      const [counts, handlers, crates] = await Promise.all([
        countHandlers(store, id),
        handlersOf(store, id, after),
        cratesOfImport(store, id),
      ]);
      return { state, counts, handlers: handlers.map(presentHandler), crates };
    },
    done: async () => {
      const imported = requireFound(await findImport(store, id), 'import', id);
      return { state: imported.state, result: presentResult(imported, await handlersOf(store, id)) };
    },
  };
}
