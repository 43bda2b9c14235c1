/** The baseline of `DbPool`: a plain Node server in a separate process that makes the same query with pg. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

const [, , connectionString, poolSize] = process.argv;
const pool = new pg.Pool({ ...(connectionString && { connectionString }), max: Number(poolSize) });

const server = createServer((request, response) => {
  const id = Number(request.url?.split('/').pop());
  pool.query('SELECT id, name, price FROM items WHERE id = $1', [id]).then(
    ({ rows }) => {
      const body = JSON.stringify(rows[0]);
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    },
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit());
