/** Entry of the process `release`: brings the schema up to date, and ends. */

import { openProcess } from '../bootstrap/start-process.js';
import { loadProcessConfig } from '../config.js';
import { migrateQueues } from '../queues/queues.js';
import { migrate } from '../store/database.js';

const { config, log } = openProcess('release', loadProcessConfig);
try {
  const applied = await migrate(config.DATABASE_URL, (message) => log.warn(message));
  // Also when the queues are on Redis: then switching to PostgreSQL needs no migration.
  await migrateQueues(config);
  log.info({ applied }, 'schema up to date');
} catch (error) {
  log.fatal({ err: error }, 'migration failed');
  process.exitCode = 1;
}
