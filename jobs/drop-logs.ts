/** Makes room in the log: old entries go, and of those who have more than their share the oldest. */
import type { Config } from '../src/config.js';
import type { Store } from '../src/store/database.js';
import { dropOldLogs } from '../src/store/log-partitions.js';
import { shareLogs } from '../src/store/log-usage.js';
import type { Logger } from '../src/util/log.js';

/** One run. */
export async function dropLogs(
  store: Store,
  { LOG_RETENTION_DAYS, LOG_RETENTION_MB }: Pick<Config, 'LOG_RETENTION_DAYS' | 'LOG_RETENTION_MB'>,
  log: Logger,
): Promise<void> {
  const hours = await dropOldLogs(store, LOG_RETENTION_DAYS);
  if (hours > 0) log.info({ hours }, 'old entries of the log dropped');
  const shared = await shareLogs(store, LOG_RETENTION_MB);
  if (shared.hours > 0)
    log.info(
      shared,
      'the log was full: of endpoints that have more than their share the oldest entries were dropped',
    );
}
