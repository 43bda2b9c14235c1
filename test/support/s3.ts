/** A real S3 server for tests, on a free port and a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'minio';
import { eventually } from './eventually.js';
import { freePort } from './postgres.js';
import { tempDir } from './temp.js';

export interface TestS3 {
  /** The settings by which the product finds it. */
  readonly settings: {
    readonly S3_ENDPOINT: string;
    readonly S3_REGION: string;
    readonly S3_ACCESS_KEY: string;
    readonly S3_SECRET_KEY: string;
  };
  createBucket(name: string): Promise<void>;
  remove(): Promise<void>;
}

/** The server's executable, if `npm test` found or built one. */
export function s3Executable(): string | undefined {
  return process.env['TEST_S3_SERVER'] || undefined;
}

/** Starts a server. */
export async function startS3(executable: string): Promise<TestS3> {
  const folder = await tempDir('s3');
  const port = await freePort();
  const [accessKey, secretKey] = ['test-access', 'test-secret'];
  const data = join(folder.path, 'data');
  await mkdir(data);
  const server: ChildProcess = spawn(executable, ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', data], {
    env: { ROOT_ACCESS_KEY: accessKey, ROOT_SECRET_KEY: secretKey, HOME: folder.path },
    stdio: 'ignore',
  });
  const client = new Client({
    endPoint: '127.0.0.1',
    port,
    useSSL: false,
    accessKey,
    secretKey,
    region: 'us-east-1',
  });
  await eventually(() => client.listBuckets());
  return {
    settings: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_REGION: 'us-east-1',
      S3_ACCESS_KEY: accessKey,
      S3_SECRET_KEY: secretKey,
    },
    createBucket: (name) => client.makeBucket(name),
    remove: async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGTERM');
      await ended;
      await folder.remove();
    },
  };
}
