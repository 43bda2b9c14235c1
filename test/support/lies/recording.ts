/** What a real server says, recorded and played back with damage. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { LyingServer } from './lie.js';
import { startLyingServer } from './lie.js';

/** Of one connection: what the server has said before the client spoke, after its first words, and so on. */
export type Conversation = readonly Buffer[];

/** Records the conversations of the server at a port while `use` talks to it through another port. */
export async function record(port: number, use: (port: number) => Promise<unknown>): Promise<Conversation[]> {
  const conversations: Buffer[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const turns: Buffer[] = [Buffer.alloc(0)];
    conversations.push(turns);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.on('data', (chunk) => {
      turns.push(Buffer.alloc(0));
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      turns.push(Buffer.concat([turns.pop() ?? Buffer.alloc(0), chunk]));
      client.write(chunk);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  }
  return conversations.filter((turns) => turns.some((turn) => turn.length > 0));
}

/** Says the same again, on each connection the next conversation, and the last one on all after it. */
export function playBack(conversations: readonly Conversation[]): Promise<LyingServer> {
  let count = 0;
  return startLyingServer({
    serve: (socket) => {
      const turns = conversations[Math.min(count++, conversations.length - 1)] ?? [];
      let turn = 0;
      const speak = () => {
        const said = turns[turn++];
        if (said && said.length > 0) socket.write(said);
      };
      socket.on('data', speak);
      speak();
    },
  });
}
