/** Servers for tests that are not packages of the system; `scripts/test-servers.mjs` puts them here. */
import { homedir } from 'node:os';
import { join } from 'node:path';

export const SERVER_CACHE = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'edge-gateway',
  'test-servers',
);
