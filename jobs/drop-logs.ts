/** Drops the oldest entries of the log. */
import type { Config } from '../src/config.js';
import type { Store } from '../src/store/database.js';
import { dropOldLogs } from '../src/store/log-partitions.js';
import type { Logger } from '../src/util/log.js';

/** One run. */
export async function dropLogs(
  store: Store,
  { LOG_RETENTION_DAYS, LOG_RETENTION_MB }: Pick<Config, 'LOG_RETENTION_DAYS' | 'LOG_RETENTION_MB'>,
  log: Logger,
): Promise<void> {
  const dropped = await dropOldLogs(store, LOG_RETENTION_DAYS, LOG_RETENTION_MB);
  if (dropped.partitions > 0)
    log.info({ hours: dropped.partitions, bytes: dropped.bytes }, 'old entries of the log dropped');
}
