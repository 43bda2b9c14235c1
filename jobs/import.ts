/**
 * The job `import`, the parent of the jobs of its handlers: runs after them, and makes sure that the import has ended.
 */

import type { ImportJob } from '../src/queues/jobs.js';
import type { Store } from '../src/store/database.js';
import { finishImport } from '../src/store/imports.js';
import type { Logger } from '../src/util/log.js';

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
