/**
 * A separate PostgreSQL for a test file: with passwords, TLS for `localhost`, and an authority that is not trusted
 * elsewhere.
 */
import { appendFile, chown, copyFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { type Certificates, makeCertificates } from '../certificates.js';
import { openTestServer } from '../postgres.js';
import { tempDir } from '../temp.js';

export interface PostgresBackend extends TestBackend<'postgres'> {
  readonly certificates: Certificates;
}

const USER = 'postgres';
const PASSWORD = "it's a \\ secret";

export async function startPostgresBackend(): Promise<PostgresBackend> {
  const { server, remove } = await openTestServer('postgres-tls', { password: PASSWORD });
  const folder = await tempDir('postgres-certificates');
  const certificates = await makeCertificates(folder.path, ['localhost']);
  await addCertificate(server.data, certificates);
  await server.start();
  return {
    certificates,
    config: parseServiceConfig('postgres', {
      ...{ host: '127.0.0.1', port: server.port, database: 'postgres', username: USER, password: PASSWORD },
    }),
    stop: () => server.stop(),
    start: () => server.start(),
    remove: async () => {
      await remove();
      await folder.remove();
    },
  };
}

/** Puts it where the server looks, as a file of the server's user. */
async function addCertificate(data: string, { cert, key }: Certificates): Promise<void> {
  const { uid, gid } = await stat(data);
  for (const [from, name] of [
    [cert, 'server.crt'],
    [key, 'server.key'],
  ] as const) {
    await copyFile(from.path, join(data, name));
    await chown(join(data, name), uid, gid);
  }
  await appendFile(join(data, 'postgresql.conf'), '\nssl = on\n');
}
