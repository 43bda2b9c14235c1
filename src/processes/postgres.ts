/**
 * Entry of the embedded PostgreSQL server, a separate process: `npm run up` starts it first and stops it last. It sends
 * the URL to its parent, and ends when asked to or when the parent has ended.
 */

import { startProcessWith } from '../bootstrap/start-process.js';
import { loadConfig } from '../config.js';
import { startEmbeddedPostgres } from '../up/embedded-postgres.js';

await startProcessWith('postgres', loadConfig, async ({ config, log, shutdown }) => {
  const server = await startEmbeddedPostgres(config.DATA_DIR, (line) => log.debug(line));
  shutdown.add('server', server.stop);
  return { url: server.url };
});
