/** Chooses the artifact store. */
import { resolve } from 'node:path';
import { type Config, ConfigError } from '../config.js';
import type { ArtifactStore } from './artifact-store.js';
import { DirectoryStore } from './directory-store.js';

/**
 * Opens the store that ARTIFACTS_URL names.
 * @throws ConfigError when it is neither a folder nor an S3 URL
 */
export async function openArtifactStore(config: Config): Promise<ArtifactStore> {
  const url = config.ARTIFACTS_URL;
  if (url?.startsWith('s3://')) {
    // Loaded only when needed: the client library takes memory.
    const { S3Store } = await import('./s3-store.js');
    return new S3Store(url, config);
  }
  const folder = artifactFolder(config);
  if (folder === undefined)
    throw new ConfigError(`ARTIFACTS_URL: must be a folder or s3://bucket/prefix, not "${url}"`);
  return new DirectoryStore(folder);
}

/** The folder of artifacts; undefined when they are somewhere else. */
export function artifactFolder({
  ARTIFACTS_URL: url,
  DATA_DIR,
}: Pick<Config, 'ARTIFACTS_URL' | 'DATA_DIR'>): string | undefined {
  if (url === undefined) return `${DATA_DIR}/artifacts`;
  const isOther = /^[a-z0-9]+:\/\//i.test(url) && !url.startsWith('file://');
  return isOther ? undefined : resolve(url.replace(/^file:\/\//, ''));
}
