/**
 * How many point reads a second does the actor host make of a SQLite file, compared with the library in one process?
 */
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { Stack } from '../../test/support/processes.js';
import type { ServiceClient } from '../../test/support/service-client.js';
import { activeService, bind, connectAs, createEndpoint } from '../../test/support/test-services.js';
import { concurrentRate } from '../support/concurrent-rate.js';
import { median, type Row, round } from '../support/report.js';

const ROUNDS = 5;
const SECONDS = 3;
const ROWS = 10_000;

/** As many reads as possible, each of another row. */
export async function sqliteReads(stack: Stack): Promise<Row> {
  const path = 'items.db';
  const database = new DatabaseSync(join(stack.dataDir, 'sqlite', path));
  const clients: ServiceClient[] = [];
  try {
    database.exec('PRAGMA journal_mode = WAL');
    database.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL)');
    const insert = database.prepare('INSERT INTO items VALUES (?, ?, ?)');
    database.exec('BEGIN');
    for (let id = 1; id <= ROWS; id++) insert.run(id, `item ${id}`, id * 1.5);
    database.exec('COMMIT');
    const endpointId = await createEndpoint(stack.api, '/sqlite-reads');
    await bind(stack.api, endpointId, await activeService(stack.api, 'sqlite', { path }), 'db');
    for (let i = 0; i < 4; i++) clients.push(await connectAs(stack, endpointId));
    const sql = 'SELECT id, name, price FROM items WHERE id = ?';
    const select = database.prepare(sql);
    const direct = () => rateOf(SECONDS, () => JSON.stringify(select.all(randomId())));
    const head = { pool: 'db', op: 'query' };
    const read = async (client: ServiceClient) => {
      const { ok, message } = await client.send(head, JSON.stringify({ sql, params: [randomId()] }));
      if (!ok) throw new Error(message);
    };
    const through = () => concurrentRate(SECONDS, 64, clients, read);
    await through();
    const pairs: { ours: number; plain: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) pairs.push({ ours: await through(), plain: direct() });
    return {
      question: 'SQLite point reads/s through the actor host, against the library in one process',
      measured: `${round(median(pairs.map(({ ours }) => ours)))}/s against ${round(median(pairs.map(({ plain }) => plain)))}/s`,
      value: median(pairs.map(({ ours, plain }) => ours / plain)),
      unit: 'x',
      bar: { atLeast: 0.3 },
    };
  } finally {
    for (const client of clients) await client.close();
    database.close();
  }
}

function randomId(): number {
  return 1 + Math.floor(Math.random() * ROWS);
}

/** Runs a second of a function. */
function rateOf(seconds: number, work: () => unknown): number {
  const started = performance.now();
  let times = 0;
  while (performance.now() - started < seconds * 1000) {
    for (let i = 0; i < 100; i++) work();
    times += 100;
  }
  return times / ((performance.now() - started) / 1000);
}
