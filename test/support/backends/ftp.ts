/** A real FTP server (vsftpd) for tests, with or without TLS, on a free port and a folder of its own. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

export interface FtpBackend extends TestBackend<'ftp'> {
  /** The files below the `base_path` of the config. */
  readonly folder: string;
}

const PASSWORD = 'test-password';

/** Starts a server. */
export async function startFtpBackend({ tls = false } = {}): Promise<FtpBackend> {
  const home = await tempDir('ftp');
  const port = await freePort();
  const folder = join(home.path, 'files');
  await mkdir(folder);
  const certificates = tls ? await makeCertificates(home.path, ['127.0.0.1']) : undefined;
  const passwords = join(home.path, 'passwords');
  await writeFile(passwords, `${PASSWORD}\n`);
  const settings = {
    listen: 'YES',
    background: 'NO',
    listen_address: '127.0.0.1',
    listen_port: port,
    // No account of the system is needed: it stays who started it, and has one user, whose password it looks up itself.
    run_as_launching_user: 'YES',
    local_enable: 'NO',
    anonymous_enable: 'YES',
    secure_email_list_enable: 'YES',
    email_password_file: passwords,
    anon_root: folder,
    anon_umask: '022',
    anon_world_readable_only: 'NO',
    anon_upload_enable: 'YES',
    anon_mkdir_write_enable: 'YES',
    anon_other_write_enable: 'YES',
    write_enable: 'YES',
    allow_writeable_chroot: 'YES',
    seccomp_sandbox: 'NO',
    xferlog_enable: 'NO',
    ...(certificates && {
      ssl_enable: 'YES',
      allow_anon_ssl: 'YES',
      force_anon_logins_ssl: 'YES',
      force_anon_data_ssl: 'YES',
      require_ssl_reuse: 'YES',
      ssl_ciphers: 'HIGH',
      rsa_cert_file: certificates.cert.path,
      rsa_private_key_file: certificates.key.path,
    }),
  };
  const configFile = join(home.path, 'vsftpd.conf');
  await writeFile(
    configFile,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const server = serverProcess('/usr/sbin/vsftpd', [configFile], port);
  await server.start();
  return {
    folder,
    config: parseServiceConfig('ftp', {
      host: '127.0.0.1',
      port,
      username: 'anonymous',
      password: PASSWORD,
      protocol: tls ? 'ftps' : 'ftp',
      base_path: folder,
      timeout_seconds: 10,
      ...(certificates && { ssl_root_cert: certificates.ca.pem }),
    }),
    ...withFolder(server, home),
  };
}
