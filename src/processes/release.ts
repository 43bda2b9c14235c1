/** Entry of the process `release`: brings the schema up to date, and ends. */

import { openProcess } from '../bootstrap/start-process.js';
import { loadProcessConfig } from '../config.js';
import { sqliteFolders } from '../model/sqlite-folders.js';
import { migrateQueues } from '../queues/queues.js';
import { migrate, openDatabase } from '../store/database.js';
import { listServices } from '../store/services.js';

/** Since this migration, files of sqlite services are only opened in certain folders. */
const FILES_CONFINED = '20261223000000_sqlite_files';

const { config, log } = openProcess('release', loadProcessConfig);
try {
  const applied = await migrate(config.DATABASE_URL, (message) => log.warn(message));
  // Also when the queues are on Redis: then switching to PostgreSQL needs no migration.
  await migrateQueues(config);
  log.info({ applied }, 'schema up to date');
  if (applied.some((name) => name.startsWith(FILES_CONFINED))) await tellOfFiles();
} catch (error) {
  log.fatal({ err: error }, 'migration failed');
  process.exitCode = 1;
}

async function tellOfFiles(): Promise<void> {
  const store = openDatabase(config.DATABASE_URL, (error) => log.warn({ err: error }, 'announcing failed'));
  try {
    const services = (await listServices(store, {})).rows.filter(
      ({ service_type }) => service_type === 'sqlite',
    );
    if (services.length === 0) return;
    log.warn(
      { services: services.map(({ name }) => name), folders: sqliteFolders(config) },
      'files of these sqlite services have to be in these folders since this version: name those where they are in ' +
        'SQLITE_DIR, or move the files; services whose files are not found say so, and make no new ones',
    );
  } finally {
    await store.close();
  }
}
