/**
 * Entry of the embedded PostgreSQL server, a process of its own: `npm run up` starts it before and ends it after all
 * others. It tells its parent the URL, and ends when it is told to or when the parent is gone.
 */
import { loadConfig } from '../config.js';
import { createLogger } from '../log.js';
import { Shutdown } from '../shutdown.js';
import { startEmbeddedPostgres } from '../up/embedded-postgres.js';

const config = loadConfig();
const log = createLogger('postgres', config.LOG_LEVEL);
const shutdown = new Shutdown(log);
try {
  const server = await startEmbeddedPostgres(config.DATA_DIR, (line) => log.debug(line));
  shutdown.add('server', server.stop);
  process.send?.({ type: 'ready', url: server.url });
} catch (error) {
  log.fatal({ err: error }, 'the embedded PostgreSQL could not be started');
  process.exitCode = 1;
  await shutdown.run('could not start');
}
