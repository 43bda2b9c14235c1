/** A real client of WebSockets (`ws`), which keeps what it has received; and one that sends any bytes. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { eventually } from './eventually.js';
import type { RawConnection } from './raw-http.js';

const opened = new Set<WebSocket>();
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

/** How a socket has ended. */
export interface Closed {
  readonly code: number;
  readonly reason: string;
}

export interface Client {
  readonly socket: WebSocket;
  /** Messages, the oldest first: texts as they are, bytes as buffers. */
  readonly messages: readonly (string | Buffer)[];
  /** Resolves when so many messages have come. */
  has(count: number): Promise<void>;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<Closed>;
}

/** What a server answers that refuses a WebSocket. */
export interface Refused {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/** Opens a WebSocket. `url` may be that of HTTP. */
export async function openSocket(
  url: string,
  options: ClientOptions = {},
  protocols: string[] = [],
): Promise<Client> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, {
    perMessageDeflate: false,
    ...options,
  });
  const messages: (string | Buffer)[] = [];
  socket.on('message', (data: Buffer, isBinary) => {
    messages.push(isBinary ? data : data.toString());
  });
  const closed = new Promise<Closed>((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  opened.add(socket);
  await once(socket, 'open');
  socket.on('error', () => undefined);
  const has = (count: number) =>
    eventually(() => {
      if (messages.length < count) throw new Error(`${messages.length} of ${count} messages have come`);
    });
  return { socket, messages, has, closed };
}

/** Ends all that are open. */
export function endSockets(): void {
  for (const socket of opened) socket.terminate();
  opened.clear();
}

/** Asks for a WebSocket that the server is to refuse. */
export async function refusedSocket(url: string, options: ClientOptions = {}): Promise<Refused> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { perMessageDeflate: false, ...options });
  socket.on('error', () => undefined);
  const [, response] = await once(socket, 'unexpected-response');
  let body = '';
  for await (const piece of response.setEncoding('utf8')) body += piece;
  return { status: response.statusCode, headers: response.headers, body };
}

/** The head of a request for a WebSocket. */
export function upgradeHead(path: string, lines: readonly string[] = []): string {
  return [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${KEY}`,
    ...lines,
    '\r\n',
  ].join('\r\n');
}

/** Opens a WebSocket on a connection; the test writes its frames. */
export async function openRawSocket(connection: RawConnection, path: string): Promise<RawConnection> {
  connection.send(upgradeHead(path));
  await eventually(() => {
    if (!/^HTTP\/1\.1 101 .*\r\n\r\n/s.test(connection.received)) throw new Error(connection.received);
  });
  return connection;
}

/** What follows the head of the response. */
export function framesOf(connection: RawConnection): Buffer {
  return Buffer.from(connection.received.split('\r\n\r\n').slice(1).join('\r\n\r\n'), 'latin1');
}

/** A frame of a client (RFC 6455, section 5.2). `first`: its first byte. */
export function frame(first: number, payload: Buffer | string = '', isMasked = true): string {
  const bytes = Buffer.from(payload as string);
  const extended = bytes.length < 126 ? 0 : bytes.length < 65_536 ? 2 : 8;
  const header = Buffer.alloc(2 + extended);
  header[0] = first;
  header[1] = (isMasked ? 0x80 : 0) | (extended === 0 ? bytes.length : extended === 2 ? 126 : 127);
  if (extended === 2) header.writeUInt16BE(bytes.length, 2);
  if (extended === 8) header.writeBigUInt64BE(BigInt(bytes.length), 2);
  if (!isMasked) return Buffer.concat([header, bytes]).toString('latin1');
  const mask = randomBytes(4);
  const masked = bytes.map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return Buffer.concat([header, mask, masked]).toString('latin1');
}
