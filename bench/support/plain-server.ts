/** A plain Node server with the response of the handlers. Prints its port. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SMALL_JSON_BODY } from './handlers.js';

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': SMALL_JSON_BODY.length });
    response.end(SMALL_JSON_BODY);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': body.length });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
