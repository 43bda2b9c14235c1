/** How many requests a second with a database query are served, compared with a plain Node server on the same pool? */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createDatabase } from '../../test/support/postgres.js';
import type { Stack } from '../../test/support/processes.js';
import { activeService, bind } from '../../test/support/test-services.js';
import { ROW_BY_KEY } from '../support/handlers.js';
import { load } from '../support/load.js';
import { median, type Row, round } from '../support/report.js';

const ROUNDS = 5;
const SECONDS = 3;
const ROWS = 10_000;
const POOL_SIZE = 16;

/** Many requests at a time, each for another row. */
export async function rowByKey(stack: Stack): Promise<Row> {
  const database = await createDatabase();
  const plain = await startPlainServer(database.url);
  try {
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query(
      'CREATE TABLE items (id integer PRIMARY KEY, name text NOT NULL, price numeric NOT NULL)',
    );
    await client.query(
      `INSERT INTO items SELECT i, 'item ' || i, i * 1.5 FROM generate_series(1, ${ROWS}) AS i`,
    );
    await client.query('ANALYZE items');
    await client.end();
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const config = { host: hostname, port: Number(port), database: pathname.slice(1), username, password };
    const serviceId = await activeService(stack.api, 'postgres', { ...config, pool_size: POOL_SIZE });
    await bind(stack.api, await stack.deploy({ path: '/items/{id}', code: ROW_BY_KEY }), serviceId, 'db');
    const run = async (url: string) =>
      (await load({ url, seconds: SECONDS, connections: 64, script: RANDOM_ITEM })).requestsPerSecond;
    await run(stack.gatewayUrl);
    await run(plain.url);
    const pairs: { ours: number; plain: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      pairs.push({ ours: await run(stack.gatewayUrl), plain: await run(plain.url) });
    }
    const ours = median(pairs.map((pair) => pair.ours));
    return {
      question:
        'requests/s of a handler with one `DbPool.query` by key on PostgreSQL, 64 connections, against Node + pg',
      measured: `${round(ours)}/s against ${round(median(pairs.map((pair) => pair.plain)))}/s`,
      value: median(pairs.map((pair) => pair.ours / pair.plain)),
      unit: 'x',
      bar: { atLeast: 0.8 },
    };
  } finally {
    plain.stop();
    await database.drop();
  }
}

const RANDOM_ITEM = `request = function() return wrk.format("GET", "/items/" .. math.random(1, ${ROWS})) end\n`;

async function startPlainServer(databaseUrl: string): Promise<{ url: string; stop(): void }> {
  const script = fileURLToPath(new URL('../support/pg-server.js', import.meta.url));
  const child = fork(script, [databaseUrl, String(POOL_SIZE)]);
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve));
  return { url: `http://127.0.0.1:${port}`, stop: () => child.disconnect() };
}
