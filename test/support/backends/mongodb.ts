/** FerretDB, a MongoDB server that keeps its data in SQLite, as a backend. Users sign in with SCRAM. */
import { join } from 'node:path';
import type { TestBackend } from '../backend.js';
import { makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { SERVER_CACHE } from '../server-cache.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

/** As `scripts/test-servers.mjs` builds it. */
const FERRETDB = join(SERVER_CACHE, 'ferretdb-v1.24.2');

export const MONGODB_USER = 'tester';
export const MONGODB_PASSWORD = 'correct:horse@battery/staple';

export interface MongodbBackendOptions {
  /** Names the certificate is made for; the server then speaks TLS only. The config has no TLS: a `uri` needs it. */
  readonly tlsHosts?: readonly string[];
}

/** A server and, with TLS, the certificate to trust as PEM. */
export interface MongodbBackend extends TestBackend<'mongodb'> {
  readonly ca?: string;
}

export async function startMongodbBackend({ tlsHosts }: MongodbBackendOptions = {}): Promise<MongodbBackend> {
  const folder = await tempDir('mongodb');
  const port = await freePort();
  const tls = tlsHosts && (await makeCertificates(folder.path, tlsHosts));
  const args = [
    ...['--handler=sqlite', `--sqlite-url=file:${folder.path}/`, `--state-dir=${folder.path}`],
    ...['--debug-addr=-', '--telemetry=disable', '--log-level=ERROR'],
    ...(tls ? [`--listen-tls=127.0.0.1:${port}`, '--listen-addr='] : [`--listen-addr=127.0.0.1:${port}`]),
    ...(tls ? [`--listen-tls-cert-file=${tls.cert.path}`, `--listen-tls-key-file=${tls.key.path}`] : []),
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
    ...(tls && { ca: tls.ca.pem }),
    ...withFolder(server, folder),
  };
}
