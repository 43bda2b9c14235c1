/** How many requests a second with a database query are served, compared with a plain Node server on the same pool? */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createDatabase, type TestDatabase, withClient } from '../../test/support/postgres.js';
import type { Stack } from '../../test/support/processes.js';
import { activeService, bind } from '../../test/support/test-services.js';
import { ROW_BY_KEY } from '../support/handlers.js';
import { load } from '../support/load.js';
import { type Row, round } from '../support/report.js';
import { measureInTurn, medianOf, ratioOf } from '../support/rounds.js';

const ROUNDS = 5;
const SECONDS = 3;
const ROWS = 10_000;
const POOL_SIZE = 16;

/** Many requests at a time, each for another row. */
export async function rowByKey(stack: Stack): Promise<Row> {
  const items = await createItems();
  const plain = await startPlainServer(items.url);
  try {
    await deployItem(stack, items);
    const rounds = await measureInTurn(ROUNDS, {
      ours: () => itemsPerSecond(stack.gatewayUrl),
      plain: () => itemsPerSecond(plain.url),
    });
    const rate = (perSecond: number) => perSecond;
    return {
      question:
        'requests/s of a handler with one `DbPool.query` by key on PostgreSQL, 64 connections, against Node + pg',
      measured: `${round(medianOf(rounds, 'ours', rate))}/s against ${round(medianOf(rounds, 'plain', rate))}/s`,
      value: ratioOf(rounds, 'ours', 'plain', rate),
      unit: 'x',
      bar: { atLeast: 0.8 },
    };
  } finally {
    plain.stop();
    await items.drop();
  }
}

/** A database with a table of items. */
export async function createItems(): Promise<TestDatabase> {
  const database = await createDatabase();
  await withClient(database.url, async (client) => {
    await client.query(
      'CREATE TABLE items (id integer PRIMARY KEY, name text NOT NULL, price numeric NOT NULL)',
    );
    await client.query(
      `INSERT INTO items SELECT i, 'item ' || i, i * 1.5 FROM generate_series(1, ${ROWS}) AS i`,
    );
    await client.query('ANALYZE items');
  });
  return database;
}

/** Deploys a handler that returns an item. */
export async function deployItem({ api, deploy }: Stack, items: TestDatabase): Promise<void> {
  const { hostname, port, username, password, pathname } = new URL(items.url);
  const config = { host: hostname, port: Number(port), database: pathname.slice(1), username, password };
  const serviceId = await activeService(api, 'postgres', { ...config, pool_size: POOL_SIZE });
  await bind(api, await deploy({ path: '/items/{id}', code: ROW_BY_KEY }), serviceId, 'db');
}

/** Measures how many items a server that has them returns. */
export async function itemsPerSecond(url: string): Promise<number> {
  return (await load({ url, seconds: SECONDS, connections: 64, script: RANDOM_ITEM })).requestsPerSecond;
}

const RANDOM_ITEM = `request = function() return wrk.format("GET", "/items/" .. math.random(1, ${ROWS})) end\n`;

async function startPlainServer(databaseUrl: string): Promise<{ url: string; stop(): void }> {
  const script = fileURLToPath(new URL('../support/pg-server.js', import.meta.url));
  const child = fork(script, [databaseUrl, String(POOL_SIZE)]);
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve));
  return { url: `http://127.0.0.1:${port}`, stop: () => child.disconnect() };
}
