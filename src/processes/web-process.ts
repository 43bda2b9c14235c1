/** The process `web`: the management API. */
import { ActorHostClient } from '../actors/client.js';
import { identityProviderOf } from '../api/access/identity-provider.js';
import { API_TOPICS } from '../api/api-dependencies.js';
import { createApp } from '../api/app.js';
import { uploadRoom } from '../api/objects/upload-room.js';
import { keepKeySets } from '../api/policies/key-sets.js';
import { serveApp } from '../api/server.js';
import { keyWarning } from '../api/system/warnings.js';
import { openArtifactStore } from '../artifacts/open.js';
import { metricsFolders, runDirectory } from '../bootstrap/run-directory.js';
import { type ProcessContext, startProcess } from '../bootstrap/start-process.js';
import { ImportReader } from '../import/reader.js';
import { Gateways } from '../internal/gateways.js';
import { SECRET_SETTINGS } from '../model/service-configs.js';
import { openQueues } from '../queues/queues.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodesWhenPossible } from '../reconcile/nodes.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { actorHostToken, gatewayToken } from '../secrets/service-token.js';
import { openDatabase } from '../store/database.js';
import { hasUsers } from '../store/users.js';
import { Threads } from '../threads/threads.js';
import { isLoopback } from '../util/loopback.js';
import { removeStaleUploads } from '../util/uploads.js';

const POOL_SIZE = 16;
/** Longer than most builds and imports take; the server waits some seconds longer for all responses. */
const WAITS_END_MS = 20_000;

await startProcess('web', start, SECRET_SETTINGS);

async function start({ config, log, shutdown }: ProcessContext): Promise<void> {
  const identityProvider = identityProviderOf(config);
  const secrets = await loadSecretBox(config);
  const artifacts = await openArtifactStore(config);
  const runDir = await runDirectory(config.DATA_DIR);
  await removeStaleUploads(config.DATA_DIR);

  const warn = (error: Error) => log.warn({ err: error }, 'announcements failed');
  const store = openDatabase(config.DATABASE_URL, warn, POOL_SIZE);
  shutdown.add('database', () => store.close());
  const queues = openQueues(config, log);
  shutdown.add('queues', () => queues.close());
  const changes = new Changes(config.DATABASE_URL, API_TOPICS, log);
  shutdown.add('changes', () => changes.stop());

  shutdown.add('node', joinNodesWhenPossible(store, 'web', log));

  const actorHosts = new ActorHostClient({ store, token: actorHostToken(secrets), log });
  shutdown.add('actor hosts', async () => actorHosts.close());

  const gateways = new Gateways({
    store,
    token: gatewayToken(secrets),
    log,
    startTimeoutMs: config.START_TIMEOUT_MS,
    requestTimeoutMs: config.REQUEST_TIMEOUT_MS,
  });
  const threads = new Threads();
  shutdown.add('threads', () => threads.close());
  const importReader = new ImportReader(config);
  shutdown.add('import reader', () => importReader.close());

  const [stop, waitsEnd] = [new AbortController(), new AbortController()];
  const app = createApp({
    store,
    config,
    log,
    secrets,
    identityProvider,
    queues,
    changes,
    artifacts,
    metricsFolders: metricsFolders(runDir),
    actorHosts,
    gateways,
    threads,
    importReader,
    uploadRoom: uploadRoom(config),
    stopping: stop.signal,
    waitsEnd: waitsEnd.signal,
  });
  const keySets = keepKeySets(store, config.ALLOW_PRIVATE_URLS, log);
  shutdown.add('key sets', () => keySets.stop());
  const server = await serveApp(app, config, log);
  shutdown.add('server', () => {
    stop.abort();
    const timer = setTimeout(() => waitsEnd.abort(), WAITS_END_MS);
    return server.close().finally(() => clearTimeout(timer));
  });
  log.info({ url: server.url }, 'management API listening');
  const weakKey = keyWarning(config);
  if (weakKey !== undefined) log.warn(weakKey);
  if (config.API_KEY === undefined && !isLoopback(config.HOST) && !(await hasUsers(store))) {
    log.warn(
      { address: config.HOST },
      'the management API is closed until it has a user; make the first admin: npm run user -- create-admin EMAIL',
    );
  }
}
