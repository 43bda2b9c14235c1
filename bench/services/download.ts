/** How fast is a file downloaded through the management API, compared with the S3 server itself? */
import { request } from 'node:http';
import { Client as MinioClient } from 'minio';
import { startS3Backend } from '../../test/support/backends/s3.js';
import type { Stack } from '../../test/support/processes.js';
import { activeService } from '../../test/support/test-services.js';
import { median, type Row, round, timed } from '../support/report.js';

const ROUNDS = 15;
const OBJECT_BYTES = 100 * 1024 * 1024;

export async function download(stack: Stack): Promise<Row> {
  const backend = await startS3Backend();
  try {
    const { endpoint, access_key, secret_key, bucket } = backend.config;
    const { hostname, port } = new URL(`http://${endpoint}`);
    const s3 = new MinioClient({
      endPoint: hostname,
      port: Number(port),
      useSSL: false,
      accessKey: access_key,
      secretKey: secret_key,
      region: 'us-east-1',
    });
    await s3.putObject(bucket, 'large.bin', Buffer.alloc(OBJECT_BYTES, 'x'), OBJECT_BYTES);
    await activeService(stack.api, 'objstore', backend.config);
    const directUrl = await s3.presignedGetObject(bucket, 'large.bin');
    const ours = () => timed(() => drain(`${stack.apiUrl}/api/minio/objects/large.bin`));
    const direct = () => timed(() => drain(directUrl));
    await ours();
    await direct();
    const pairs: { ours: number; plain: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) pairs.push({ ours: await ours(), plain: await direct() });
    const speed = (ms: number) => `${round(OBJECT_BYTES / 1024 ** 2 / (ms / 1000))} MiB/s`;
    return {
      question: 'download of 100 MB through `/api/minio/objects`, against the S3 server directly: speed',
      measured: `${speed(median(pairs.map((pair) => pair.ours)))} against ${speed(median(pairs.map((pair) => pair.plain)))}`,
      value: median(pairs.map((pair) => pair.plain / pair.ours)),
      unit: 'x',
      bar: { atLeast: 0.5 },
    };
  } finally {
    await backend.remove();
  }
}

/** Reads a whole response. */
function drain(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200 && bytes === OBJECT_BYTES) resolve();
        else reject(new Error(`${url} answered ${response.statusCode} and ${bytes} bytes`));
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}
