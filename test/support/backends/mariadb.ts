/** MariaDB of a test file: an account with a password, and TLS for `localhost` for who asks for it. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { type Certificates, makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

export interface MariadbBackend extends TestBackend<'mysql'> {
  readonly certificates: Certificates;
}

const ACCOUNT = { database: 'gate', username: 'gate', password: 'it"s \\ secret' } as const;

/** @param tls whether the server offers it */
export async function startMariadbBackend(tls = true): Promise<MariadbBackend> {
  const folder = await tempDir('mariadb');
  const port = await freePort();
  const data = join(folder.path, 'data');
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const certificates = await makeCertificates(folder.path, ['localhost']);
  await promisify(execFile)('mariadb-install-db', [
    ...[
      '--no-defaults',
      `--datadir=${data}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      ...user,
    ],
  ]);
  const accounts = join(folder.path, 'accounts.sql');
  await writeFile(
    accounts,
    `CREATE DATABASE IF NOT EXISTS ${ACCOUNT.database} CHARACTER SET utf8mb4;
     CREATE USER IF NOT EXISTS '${ACCOUNT.username}'@'%' IDENTIFIED BY '${ACCOUNT.password.replace('\\', '\\\\')}';
     GRANT ALL ON *.* TO '${ACCOUNT.username}'@'%' WITH GRANT OPTION;\n`,
  );
  const server = serverProcess(
    'mariadbd',
    [
      ...['--no-defaults', `--datadir=${data}`, `--port=${port}`, '--bind-address=127.0.0.1', ...user],
      ...[`--socket=${join(folder.path, 'socket')}`, `--init-file=${accounts}`, '--skip-name-resolve'],
      ...['--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=16M', '--max-allowed-packet=256M'],
      ...(tls ? [`--ssl-cert=${certificates.cert.path}`, `--ssl-key=${certificates.key.path}`] : []),
    ],
    port,
  );
  await server.start();
  return {
    certificates,
    config: parseServiceConfig('mysql', { host: '127.0.0.1', port, ...ACCOUNT }),
    ...withFolder(server, folder),
  };
}
