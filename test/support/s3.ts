/** A real S3 server for tests, on a free port and a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
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
  remove(): Promise<void>;
}

const EXECUTABLE = fileURLToPath(import.meta.resolve('s3rver/bin/s3rver.js'));
/** The only account the server has. */
const KEY = 'S3RVER';

/** Starts a server with these buckets. */
export async function startS3(...buckets: readonly string[]): Promise<TestS3> {
  const folder = await tempDir('s3');
  const port = await freePort();
  const args = ['--address', '127.0.0.1', '--port', String(port), '--directory', folder.path];
  const server: ChildProcess = spawn(
    process.execPath,
    [EXECUTABLE, ...args, ...buckets.flatMap((bucket) => ['--configure-bucket', bucket])],
    { stdio: 'ignore' },
  );
  const url = `http://127.0.0.1:${port}`;
  await eventually(() => fetch(url));
  return {
    settings: { S3_ENDPOINT: url, S3_REGION: 'us-east-1', S3_ACCESS_KEY: KEY, S3_SECRET_KEY: KEY },
    remove: async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGTERM');
      await ended;
      await folder.remove();
    },
  };
}
