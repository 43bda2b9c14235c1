/** Servers that lie: they speak the protocol of a backend up to a point, and then send something else. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { ServiceConfig, ServiceType } from '../../../src/model/service-configs.js';
import type { TestCall } from '../actors.js';

/** One lie. */
export interface Lie {
  readonly name: string;
  readonly type: ServiceType;
  /** The config of a service whose backend is the server. */
  config(port: number): ServiceConfig;
  /** Talks to one client. */
  serve(socket: Socket): void;
  /** The call that is answered with the lie, if it does not come while connecting. */
  readonly call: TestCall;
  /** It may be taken for an honest answer. */
  readonly mayPass?: boolean;
  /** Connection tests; one unless given. */
  readonly tests?: number;
}

export interface LyingServer {
  readonly port: number;
  close(): Promise<void>;
}

export async function startLyingServer({ serve }: Pick<Lie, 'serve'>): Promise<LyingServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What a server does when something has come. */
export type Reply = Buffer | ((socket: Socket) => void);

/** Sends the n-th of these answers for the n-th chunk that comes, the last one for all after it. */
export function inTurn(...answers: readonly Reply[]): (socket: Socket) => void {
  return (socket) => {
    let count = 0;
    socket.on('data', () => {
      const answer = answers[Math.min(count++, answers.length - 1)];
      if (typeof answer === 'function') answer(socket);
      else if (answer) socket.write(answer);
    });
  };
}

/** Writes the same for ever, as fast as it is taken. */
export function endless(first: Buffer, chunk: Buffer): (socket: Socket) => void {
  return (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    socket.write(first);
    more();
  };
}

const ZEROS = Buffer.alloc(64 * 1024);

/** Zeros for ever after a beginning. */
export function thenZeros(first: Buffer): (socket: Socket) => void {
  return endless(first, ZEROS);
}
