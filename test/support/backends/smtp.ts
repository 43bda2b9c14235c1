/** A real mail server as a backend: with a login, and with all kinds of encryption. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';
import type { ReceivedMail, SmtpSettings } from './smtp-settings.js';

export interface SmtpBackend extends TestBackend<'email'> {
  /** All mails it has taken. */
  received(): Promise<ReceivedMail[]>;
}

export interface SmtpBackendOptions {
  readonly encryption?: SmtpSettings['encryption'];
  /** Names the certificate is made for. */
  readonly hosts?: readonly string[];
  /** `null` for a server without login. */
  readonly password?: string | null;
}

const PROGRAM = fileURLToPath(new URL('./smtp-server-process.js', import.meta.url));
const USERNAME = 'mailer';

export async function startSmtpBackend({
  encryption = 'starttls',
  hosts = ['127.0.0.1', 'localhost'],
  password = 'correct horse',
}: SmtpBackendOptions = {}): Promise<SmtpBackend> {
  const folder = await tempDir('smtp');
  const port = await freePort();
  const certificates = await makeCertificates(folder.path, hosts);
  const login = password === null ? {} : { username: USERNAME, password };
  const settings: SmtpSettings = {
    port,
    encryption,
    key: certificates.key.path,
    cert: certificates.cert.path,
    folder: folder.path,
    ...login,
  };
  const server = serverProcess(process.execPath, [PROGRAM, JSON.stringify(settings)], port);
  await server.start();
  const config: ServiceConfig<'email'> = {
    host: '127.0.0.1',
    port,
    encryption,
    ...(encryption !== 'none' && { ssl_root_cert: certificates.ca.pem }),
    from_address: 'service@example.com',
    from_name: 'The Service',
    ...login,
  };
  return {
    config,
    received: async () => {
      const files = (await readdir(folder.path)).filter((file) => file.endsWith('.json'));
      const texts = await Promise.all(files.map((file) => readFile(join(folder.path, file), 'utf8')));
      return texts.map((text) => JSON.parse(text) as ReceivedMail);
    },
    ...withFolder(server, folder),
  };
}
