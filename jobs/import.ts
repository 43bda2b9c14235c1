/**
 * The job `import`, the parent of the jobs of its handlers: runs after them, and makes sure that the import has ended.
 */

import type { ImportJob } from '../src/queues/jobs.js';
import type { Store } from '../src/store/database.js';
import { finishImport } from '../src/store/imports.js';
import type { Logger } from '../src/util/log.js';
import type { ConsumedQueue } from './consume-in-turns.js';

interface ImportContext {
  readonly store: Store;
  readonly log: Logger;
}

/** These jobs only check whether their handlers have ended. */
const IMPORTS_AT_A_TIME = 4;

/** The queue of imports, as a worker consumes it. */
export function importQueue({ store, log }: ImportContext): ConsumedQueue<'import'> {
  return { name: 'import', slots: IMPORTS_AT_A_TIME, work: (job) => endImport(job, store, log) };
}

/** Usually the last of the handlers has ended the import already. */
export async function endImport(
  { importId, requestId }: ImportJob,
  store: Store,
  log: Logger,
): Promise<void> {
  if (await finishImport(store, importId)) {
    log.info({ request_id: requestId, import_id: importId }, 'import finished');
  }
}
