/**
 * Entry of the embedded PostgreSQL server, a process of its own: `npm run up` starts it before and ends it after all
 * others. It tells its parent the URL, and ends when it is told to or when the parent is gone.
 */
import { loadConfig } from '../config.js';
import { startProcessWith } from '../process.js';
import { startEmbeddedPostgres } from '../up/embedded-postgres.js';

await startProcessWith('postgres', loadConfig, async ({ config, log, shutdown }) => {
  const server = await startEmbeddedPostgres(config.DATA_DIR, (line) => log.debug(line));
  shutdown.add('server', server.stop);
  return { url: server.url };
});
