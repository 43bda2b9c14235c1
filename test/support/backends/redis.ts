/** Redis as a backend: with a password, and with TLS if wanted. */
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { type ServerProcess, serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

export interface RedisBackendOptions {
  /** `null` for a server without one. */
  readonly password?: string | null;
  /** Names the certificate is made for; the server then speaks TLS only. */
  readonly tlsHosts?: readonly string[];
}

/** A server that can also be made to hang. */
export interface RedisBackend extends TestBackend<'redis'>, Pick<ServerProcess, 'hang' | 'wake'> {}

export async function startRedisBackend({
  password = 'correct horse',
  tlsHosts,
}: RedisBackendOptions = {}): Promise<RedisBackend> {
  const folder = await tempDir('redis-backend');
  const port = await freePort();
  const tls = tlsHosts && (await makeCertificates(folder.path, tlsHosts));
  const config: ServiceConfig<'redis'> = {
    host: '127.0.0.1',
    port,
    database: 0,
    use_tls: tls !== undefined,
    pool_size: 2,
    ...(password !== null && { password }),
    ...(tls && { ssl_root_cert: tls.ca.pem }),
  };
  const args = [
    ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder.path],
    ...(tls
      ? ['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no']
      : ['--port', String(port)]),
    ...(tls ? ['--tls-cert-file', tls.cert.path, '--tls-key-file', tls.key.path] : []),
    ...(tls ? ['--tls-ca-cert-file', tls.ca.path] : []),
    ...(password === null ? [] : ['--requirepass', password]),
  ];
  const server = serverProcess('redis-server', args, port);
  await server.start();
  return {
    config,
    ...withFolder(server, folder),
  };
}
