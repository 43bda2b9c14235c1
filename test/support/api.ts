/** The management API in this process, with a separate port and database. */
import { ActorHostClient } from '../../src/actors/client.js';
import { identityProviderOf } from '../../src/api/access/identity-provider.js';
import { API_TOPICS, type ApiDependencies } from '../../src/api/api-dependencies.js';
import { createApp } from '../../src/api/app.js';
import { uploadRoom } from '../../src/api/objects/upload-room.js';
import { serveApp } from '../../src/api/server.js';
import { openArtifactStore } from '../../src/artifacts/open.js';
import { metricsFolders, runDirectory } from '../../src/bootstrap/run-directory.js';
import { type Config, loadConfig } from '../../src/config.js';
import { ImportReader } from '../../src/import/reader.js';
import { Gateways } from '../../src/internal/gateways.js';
import { openQueues } from '../../src/queues/queues.js';
import { Changes } from '../../src/reconcile/changes.js';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { actorHostToken, gatewayToken } from '../../src/secrets/service-token.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { Threads } from '../../src/threads/threads.js';
import { createClient, type HttpClient } from './client.js';
import { assertDescribed } from './contract.js';
import { createTestLog, type TestLog } from './log.js';
import { createDatabase } from './postgres.js';
import { tempDir } from './temp.js';

export interface TestApi extends HttpClient {
  readonly url: string;
  readonly databaseUrl: string;
  readonly store: Database;
  readonly config: Config;
  readonly logged: TestLog;
  close(): Promise<void>;
}

export interface TestApiOptions {
  readonly config?: Partial<Config>;
  /** Overrides of the dependencies of the API. */
  readonly deps?: (deps: ApiDependencies) => ApiDependencies;
}

export async function startApi(options: TestApiOptions = {}): Promise<TestApi> {
  const database = await createDatabase();
  const dataDir = await tempDir('data');
  const logged = createTestLog();
  const config: Config = {
    ...loadConfig({ DATABASE_URL: database.url, PORT: '0', DATA_DIR: dataDir.path }),
    // Documents are read at low priority, and other tests use the processors at the same time.
    IMPORT_READ_TIMEOUT_MS: 600_000,
    ...options.config,
  };
  const store = openDatabase(database.url, (error) => logged.log.error({ err: error }, 'announcing failed'));
  const secrets = createSecretBox('a key for the tests');
  const actorHosts = new ActorHostClient({ store, token: actorHostToken(secrets), log: logged.log });
  const gateways = new Gateways({
    ...{ store, token: gatewayToken(secrets), log: logged.log },
    ...{ startTimeoutMs: config.START_TIMEOUT_MS, requestTimeoutMs: config.REQUEST_TIMEOUT_MS },
  });
  const threads = new Threads();
  const importReader = new ImportReader(config);
  const stop = new AbortController();
  const deps: ApiDependencies = {
    store,
    config,
    log: logged.log,
    secrets,
    identityProvider: identityProviderOf(config),
    actorHosts,
    gateways,
    threads,
    importReader,
    uploadRoom: uploadRoom(config),
    stopping: stop.signal,
    waitsEnd: stop.signal,
    queues: openQueues({ DATABASE_URL: database.url, REDIS_URL: config.REDIS_URL }, logged.log),
    changes: new Changes(database.url, API_TOPICS, logged.log),
    artifacts: await openArtifactStore(config),
    metricsFolders: metricsFolders(await runDirectory(dataDir.path)),
  };
  const server = await serveApp(createApp(options.deps?.(deps) ?? deps), config, logged.log);
  return {
    ...createClient(server.url, assertDescribed),
    url: server.url,
    databaseUrl: database.url,
    store,
    config,
    logged,
    close: async () => {
      stop.abort();
      await server.close();
      await threads.close();
      await importReader.close();
      actorHosts.close();
      await deps.changes.stop();
      await deps.queues.close();
      await store.close();
      await database.drop();
      await dataDir.remove();
    },
  };
}
