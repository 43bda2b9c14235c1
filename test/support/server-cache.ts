/** Files for tests that are not system packages; `scripts/test-servers.mjs` installs them here. */
import { homedir } from 'node:os';
import { join } from 'node:path';

export const SERVER_CACHE = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'edge-gateway',
  'test-servers',
);

/** GitHub's API: an OpenAPI document of 13 MB and about 1,200 operations. */
export const GITHUB_DOCUMENT = join(SERVER_CACHE, 'github-openapi-23.0.2.json');

/** The files of a package with published documents, by its hash: `scripts/published-documents.mjs`. */
export function publishedPackage(sha256: string): string {
  return join(SERVER_CACHE, 'documents', sha256);
}

/** The lowest Node that is supported, and the newest of later lines that are. */
export const NODE_VERSIONS = ['20.19.6', '22.23.3', '24.21.0'] as const;

/** The program of one of `NODE_VERSIONS`. */
export function nodeProgram(version: (typeof NODE_VERSIONS)[number]): string {
  return join(SERVER_CACHE, `node-${version}`);
}
