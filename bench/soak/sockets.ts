/** WebSockets of the soak. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, openSocket } from '../../test/support/websocket.js';
import type { Landscape, SoakEndpoint } from './landscape.js';

/** A client leaves after at most so long. */
const LONGEST_MS = 5_000;
const PAUSE_MS = 20;
/** What a client is told when the handler of its socket is replaced, or the endpoint is stopped. */
const RESTARTS = 1012;
const [NORMAL, ABNORMAL] = [1000, 1006];

/**
 * Sends messages for a while, each when the answer to the one before has come, and leaves: half of the clients say so,
 * the others are just gone.
 * @throws Error when another answer comes, or the socket is closed though its endpoint was not changed
 */
export async function talk({ stack }: Landscape, endpoint: SoakEndpoint): Promise<void> {
  const before = { variants: [...endpoint.variants], changes: endpoint.changes };
  const mayHaveEnded = () => before.changes % 2 === 1 || before.changes !== endpoint.changes;
  const client = await openSocket(`${stack.gatewayUrl}${endpoint.path}`);
  let closed: number | undefined;
  const ended = client.closed.then(({ code }) => {
    closed = code;
  });
  const until = performance.now() + Math.random() * LONGEST_MS;
  let sent = 0;
  while (performance.now() < until && closed === undefined) {
    client.socket.send(String(sent++));
    while (client.messages.length < sent && closed === undefined) await delay(1);
    await delay(PAUSE_MS);
  }
  const expected = closed === undefined ? leave(client) : RESTARTS;
  await ended;
  // Both sides may close it at the same time.
  if (closed === RESTARTS ? !mayHaveEnded() : closed !== expected)
    throw new Error(`it was closed with ${closed}`);
  const isFrom = (variant: string) => client.messages.every((text, at) => text === `${variant} ${at}`);
  if (![...before.variants, ...endpoint.variants].some(isFrom))
    throw new Error(`wrong messages: ${client.messages.slice(0, 3).join(', ')}`);
}

/** @returns the code that the client sees then */
function leave({ socket }: Client): number {
  if (Math.random() < 0.5) {
    socket.close(NORMAL);
    return NORMAL;
  }
  socket.terminate();
  return ABNORMAL;
}
