/** A proxy between clients and a server, so that a test can make the server unavailable. */
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  /** The URL of the server through this proxy. */
  readonly url: string;
  /** Breaks all connections and refuses new ones. */
  down(): Promise<void>;
  up(): Promise<void>;
}

/** Starts one in front of the server of a URL. */
export async function startProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  await listen(0);
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  const url = new URL(target);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    down: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
    up: () => listen(address.port),
  };
}
