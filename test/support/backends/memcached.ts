/** A real memcached as a backend. */
import type { TestBackend } from '../backend.js';
import { freePort } from '../ports.js';
import { serverProcess } from '../server-process.js';

export async function startMemcachedBackend(): Promise<TestBackend<'memcached'>> {
  const port = await freePort();
  // Only a superuser has another user to become, and must name one.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const server = serverProcess(
    'memcached',
    ['-l', '127.0.0.1', '-p', String(port), '-U', '0', ...user],
    port,
  );
  await server.start();
  return { config: { host: '127.0.0.1', port }, start: server.start, stop: server.stop, remove: server.stop };
}
