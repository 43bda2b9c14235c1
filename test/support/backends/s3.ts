/** A real S3 server (versitygw) for tests, on a free port and a folder of its own: every folder in it is a bucket. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { makeCertificates } from '../certificates.js';
import { freePort } from '../ports.js';
import { SERVER_CACHE } from '../server-cache.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';

/** `scripts/test-servers.mjs` builds it under this name. */
const EXECUTABLE = join(SERVER_CACHE, 'versitygw-v1.8.0');

/** The account of the server, with all permissions. */
const ACCOUNT = { access_key: 'test-access', secret_key: 'test-secret-key' } as const;

export interface S3Backend extends TestBackend<'objstore'> {
  readonly url: string;
  /** Objects in the bucket of the config. */
  readonly bucketFolder: string;
}

/** Starts a server with these buckets; the config names the first. */
export async function startS3Backend(
  buckets: readonly [string, ...string[]] = ['files'],
  { tls = false } = {},
): Promise<S3Backend> {
  const folder = await tempDir('s3');
  const port = await freePort();
  const root = join(folder.path, 'buckets');
  for (const bucket of buckets) await mkdir(join(root, bucket), { recursive: true });
  const certificates = tls ? await makeCertificates(folder.path, ['127.0.0.1']) : undefined;
  const server = serverProcess(
    EXECUTABLE,
    [
      // As other S3 servers do, it keeps connections.
      ...['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive'],
      ...(certificates ? ['--cert', certificates.cert.path, '--key', certificates.key.path] : []),
      ...['posix', root],
    ],
    port,
    {
      env: {
        ROOT_ACCESS_KEY: ACCOUNT.access_key,
        ROOT_SECRET_KEY: ACCOUNT.secret_key,
        HOME: folder.path,
      },
    },
  );
  await server.start();
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    bucketFolder: join(root, buckets[0]),
    config: parseServiceConfig('objstore', {
      ...ACCOUNT,
      endpoint: `127.0.0.1:${port}`,
      bucket: buckets[0],
      use_ssl: tls,
      ...(certificates && { ssl_root_cert: certificates.ca.pem }),
    }),
    ...withFolder(server, folder),
  };
}
