/**
 * A proxy between a client and a server of this machine, which can stall: no data passes, and no connection is closed.
 */
import { connect, createServer, type Socket } from 'node:net';

export interface StallingProxy {
  readonly port: number;
  /** Stalls all connections; new ones are accepted. */
  stall(): void;
  close(): Promise<void>;
}

export async function startStallingProxy(target: number): Promise<StallingProxy> {
  const sockets = new Set<Socket>();
  let isStalled = false;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    keep(client);
    if (isStalled) return;
    const upstream = connect(target, '127.0.0.1');
    keep(upstream);
    client.pipe(upstream);
    upstream.pipe(client);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  return {
    port: address.port,
    stall: () => {
      isStalled = true;
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
