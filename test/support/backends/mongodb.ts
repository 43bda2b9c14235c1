/** FerretDB, a MongoDB server that keeps its data in SQLite, as a backend. Users sign in with SCRAM. */
import { join } from 'node:path';
import type { TestBackend } from '../backend.js';
import { freePort } from '../ports.js';
import { SERVER_CACHE } from '../server-cache.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

/** As `scripts/test-servers.mjs` builds it. */
const FERRETDB = join(SERVER_CACHE, 'ferretdb-v1.24.2');

export const MONGODB_USER = 'tester';
export const MONGODB_PASSWORD = 'correct:horse@battery/staple';

export async function startMongodbBackend(): Promise<TestBackend<'mongodb'>> {
  const folder = await tempDir('mongodb');
  const port = await freePort();
  const args = [
    ...['--handler=sqlite', `--sqlite-url=file:${folder.path}/`, `--state-dir=${folder.path}`],
    ...[`--listen-addr=127.0.0.1:${port}`, '--debug-addr=-', '--telemetry=disable', '--log-level=ERROR'],
    // Users belong to the database they are made in.
    ...['--test-enable-new-auth', '--setup-database=admin'],
    ...[`--setup-username=${MONGODB_USER}`, `--setup-password=${MONGODB_PASSWORD}`],
  ];
  const server = serverProcess(FERRETDB, args, port);
  await server.start();
  return {
    config: {
      host: '127.0.0.1',
      port,
      database: 'test',
      username: MONGODB_USER,
      password: MONGODB_PASSWORD,
      pool_size: 4,
    },
    ...withFolder(server, folder),
  };
}
