/** The S3 server of tests as the artifact store is configured with it. */
import { startS3Backend } from './backends/s3.js';

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

/** Starts a server with these buckets. */
export async function startS3(...buckets: readonly [string, ...string[]]): Promise<TestS3> {
  const { url, config, remove } = await startS3Backend(buckets);
  return {
    settings: {
      S3_ENDPOINT: url,
      S3_REGION: 'us-east-1',
      S3_ACCESS_KEY: config.access_key,
      S3_SECRET_KEY: config.secret_key,
    },
    remove,
  };
}
