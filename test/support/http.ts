/**
 * An HTTP client for cases that the client of the management API does not cover: exact bytes, raw headers, persistent
 * connections.
 */
import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
}

export interface Call {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Several pieces are sent chunked, unless a Content-Length is given. */
  readonly body?: Buffer | string | readonly Buffer[];
  /** The address to send it from. */
  readonly localAddress?: string;
  /** The connection to use; by default a new one. */
  readonly agent?: Agent;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

/** Sends a request; resolves with the whole response. */
export function call(url: string | URL, options: Call = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, agent = false, ...others } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers, agent, ...others }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const received = Buffer.concat(chunks);
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          rawHeaders: incoming.rawHeaders,
          body: received,
          text: received.toString('utf8'),
        });
      });
    });
    outgoing.on('error', reject);
    if (Array.isArray(body)) {
      for (const piece of body as readonly Buffer[]) outgoing.write(piece);
      outgoing.end();
    } else {
      outgoing.end(body);
    }
  });
}

/** Sends raw bytes on a new connection; resolves with all received bytes when it closes. */
export function exchangeBytes(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
    socket.write(bytes, 'latin1');
  });
}
