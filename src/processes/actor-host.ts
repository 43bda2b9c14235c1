/** Entry of the process `actor-host`: will own the connections to backend services; so far it takes its place among the nodes. */
import { Registry } from 'prom-client';
import { offerMetrics, registrySource } from '../metrics/process-metrics.js';
import { startProcess } from '../process.js';
import { joinNodes } from '../reconcile/node.js';
import { runDirectory } from '../run-directory.js';
import { openDatabase } from '../store/database.js';

await startProcess('actor-host', async ({ config, log, shutdown }) => {
  const store = openDatabase(
    config.DATABASE_URL,
    (error) => log.warn({ err: error }, 'announcements failed'),
    4,
  );
  shutdown.add('database', () => store.close());
  const node = await joinNodes(store, 'actor-host', {}, log);
  shutdown.add('node', () => node.leave());
  const runDir = await runDirectory(config.DATA_DIR);
  shutdown.add('metrics', await offerMetrics(runDir, 'actor-host', config, registrySource(new Registry())));
});
