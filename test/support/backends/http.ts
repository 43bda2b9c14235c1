/** An HTTP server as a backend: an API of exchange rates, and paths that answer in other ways. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { freePort } from '../ports.js';

/** A request as the server has got it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface HttpBackend extends TestBackend<'http'> {
  readonly port: number;
  /** All requests but those that test the connection. */
  readonly seen: SeenRequest[];
  /** How many connections the server has had. */
  readonly connections: () => number;
}

/** Of one euro. */
const RATES: Readonly<Record<string, number>> = { CHF: 0.95, DKK: 7.46 };

export async function startHttpBackend(
  settings: Readonly<Record<string, unknown>> = {},
  tls?: { readonly key: string; readonly cert: string },
): Promise<HttpBackend> {
  const port = await freePort();
  const seen: SeenRequest[] = [];
  let server: Server | undefined;
  let connections = 0;
  const start = async () => {
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      void serve(request, response, seen);
    };
    server = tls ? createTlsServer(tls, listener) : createServer(listener);
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
  };
  const stop = async () => {
    if (!server) return;
    const closed = new Promise((resolve) => server?.close(resolve));
    server.closeAllConnections();
    server = undefined;
    await closed;
  };
  await start();
  const config = parseServiceConfig('http', {
    base_url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/v1`,
    allow_private_addresses: true,
    ...settings,
  });
  return { config, port, seen, connections: () => connections, start, stop, remove: stop };
}

async function serve(request: IncomingMessage, response: ServerResponse, seen: SeenRequest[]): Promise<void> {
  const { method = '', headers, url = '' } = request;
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!(method === 'HEAD' && url === '/v1')) seen.push({ method, url, headers, body: body.toString() });
  const { pathname, searchParams } = new URL(url, 'http://backend');
  const status = Number(/^\/v1\/status\/(\d+)$/.exec(pathname)?.[1] ?? 200);
  switch (pathname) {
    case '/v1/rates': {
      const wanted = (searchParams.get('to') ?? '').split(',');
      const rates = Object.fromEntries(wanted.map((name) => [name, RATES[name]]));
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rates));
    }
    case '/v1/echo':
      return void response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(body);
    case '/v1/cookies':
      return void response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'] }).end();
    case '/v1/redirect':
      return void response.writeHead(302, { location: 'http://127.0.0.1:1/elsewhere' }).end();
    case '/v1/large':
      return void response.end(Buffer.alloc(Number(searchParams.get('bytes'))));
    case '/v1/broken':
      return void request.socket.destroy();
    case '/v1/silent':
      return undefined;
    case '/v1/head':
      return void response.writeHead(200, { 'x-large': 'a'.repeat(20_000) }).end();
    default:
      return void response.writeHead(status).end();
  }
}
