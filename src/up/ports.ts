/** Checks that a port is free, before processes that need it are started. */
import { createServer } from 'node:net';

/** @throws Error naming the setting when the port cannot be listened on */
export async function requireFreePort(setting: string, host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason';
    const hint = reason === 'EADDRINUSE' ? 'it is in use' : reason;
    throw new Error(`Cannot listen on ${host}:${port} (${hint}); set ${setting} to another port.`, { cause });
  }
  await new Promise((resolve) => server.close(resolve));
}
