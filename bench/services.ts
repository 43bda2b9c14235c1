/** What does the way through the actor host cost, compared with speaking to the backend directly? */
import { fork } from 'node:child_process';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { Client as MinioClient } from 'minio';
import pg from 'pg';
import { startRedisBackend } from '../test/support/backends/redis.js';
import { startS3Backend } from '../test/support/backends/s3.js';
import { createDatabase } from '../test/support/postgres.js';
import type { Stack } from '../test/support/processes.js';
import type { ServiceClient } from '../test/support/service-client.js';
import { tempDir } from '../test/support/temp.js';
import { activeService, bind, connectAs, createEndpoint, SECRET_KEY } from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { REDIS_GET, ROW_BY_KEY, SMALL_JSON } from './support/handlers.js';
import { load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, type Row, round, timed } from './support/report.js';

const ROUNDS = 5;
const SECONDS = 3;
const ROWS = 10_000;
const POOL_SIZE = 16;
const OBJECT_BYTES = 100 * 1024 * 1024;

export const services: Benchmark = () =>
  withStacks([{ env: { SECRET_KEY } }], async (stack) => {
    if (!stack) throw new Error('there is no stack');
    return [await redisGet(stack), await rowByKey(stack), await sqliteReads(stack), await download(stack)];
  });

/** One request at a time: what a call adds to the latency of a handler. */
async function redisGet(stack: Stack): Promise<Row> {
  const backend = await startRedisBackend();
  const direct = new Redis({ port: backend.config.port, password: backend.config.password ?? '' });
  try {
    await direct.set('greeting', 'hello');
    const serviceId = await activeService(stack.api, 'redis', backend.config);
    await stack.deploy({ path: '/without/{name}', code: SMALL_JSON });
    await bind(stack.api, await stack.deploy({ path: '/with', code: REDIS_GET }), serviceId, 'cache');
    const p50 = async (path: string) =>
      (await load({ url: stack.gatewayUrl + path, seconds: SECONDS, connections: 1 })).p50;
    await p50('/with');
    const ratios: number[] = [];
    const added: number[] = [];
    const plain: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const difference = (await p50('/with')) - (await p50('/without/ada'));
      const own = await medianOf(5_000, () => direct.get('greeting'));
      added.push(difference);
      plain.push(own);
      ratios.push(difference / own);
    }
    return {
      question: 'p50 that `RedisPool.get` adds to a request, against `get` of ioredis from Node',
      measured: `${round(median(added))} ms against ${round(median(plain))} ms`,
      value: median(ratios),
      unit: 'x',
      bar: { atMost: 2.5 },
    };
  } finally {
    direct.disconnect();
    await backend.remove();
  }
}

/** Many requests at a time, each for another row. */
async function rowByKey(stack: Stack): Promise<Row> {
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
  const script = fileURLToPath(new URL('support/pg-server.js', import.meta.url));
  const child = fork(script, [databaseUrl, String(POOL_SIZE)]);
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve));
  return { url: `http://127.0.0.1:${port}`, stop: () => child.disconnect() };
}

/** As many reads as go through, each of another row. */
async function sqliteReads(stack: Stack): Promise<Row> {
  const folder = await tempDir('bench-sqlite');
  const path = join(folder.path, 'items.db');
  const database = new Sqlite(path);
  const clients: ServiceClient[] = [];
  try {
    database.pragma('journal_mode = WAL');
    database.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL)');
    const insert = database.prepare('INSERT INTO items VALUES (?, ?, ?)');
    database.transaction(() => {
      for (let id = 1; id <= ROWS; id++) insert.run(id, `item ${id}`, id * 1.5);
    })();
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
      question: 'SQLite point reads/s through the actor host, against better-sqlite3 in one process',
      measured: `${round(median(pairs.map(({ ours }) => ours)))}/s against ${round(median(pairs.map(({ plain }) => plain)))}/s`,
      value: median(pairs.map(({ ours, plain }) => ours / plain)),
      unit: 'x',
      bar: { atLeast: 0.2 },
    };
  } finally {
    for (const client of clients) await client.close();
    database.close();
    await folder.remove();
  }
}

async function download(stack: Stack): Promise<Row> {
  const backend = await startS3Backend();
  try {
    const { endpoint, access_key, secret_key, bucket } = backend.config;
    const { hostname, port } = new URL(`http://${endpoint}`);
    const s3 = new MinioClient({
      endPoint: hostname,
      port: Number(port),
      useSSL: false,
      accessKey: access_key,
      secretKey: secret_key,
      region: 'us-east-1',
    });
    await s3.putObject(bucket, 'large.bin', Buffer.alloc(OBJECT_BYTES, 'x'), OBJECT_BYTES);
    await activeService(stack.api, 'objstore', backend.config);
    const directUrl = await s3.presignedGetObject(bucket, 'large.bin');
    const ours = () => timed(() => drain(`${stack.apiUrl}/api/minio/objects/large.bin`));
    const direct = () => timed(() => drain(directUrl));
    await ours();
    await direct();
    const pairs: { ours: number; plain: number }[] = [];
    for (let round = 0; round < ROUNDS * 3; round++)
      pairs.push({ ours: await ours(), plain: await direct() });
    const speed = (ms: number) => `${round(OBJECT_BYTES / 1024 ** 2 / (ms / 1000))} MiB/s`;
    return {
      question: 'download of 100 MB through `/api/minio/objects`, against the S3 server directly: speed',
      measured: `${speed(median(pairs.map((pair) => pair.ours)))} against ${speed(median(pairs.map((pair) => pair.plain)))}`,
      value: median(pairs.map((pair) => pair.plain / pair.ours)),
      unit: 'x',
      bar: { atLeast: 0.5 },
    };
  } finally {
    await backend.remove();
  }
}

function randomId(): number {
  return 1 + Math.floor(Math.random() * ROWS);
}

/** Median duration of a piece of work done so often, milliseconds. */
async function medianOf(times: number, work: () => Promise<unknown>): Promise<number> {
  const durations: number[] = [];
  for (let i = 0; i < times; i++) durations.push(await timed(work));
  return median(durations);
}

/** How often a second a piece of work can be done. */
function rateOf(seconds: number, work: () => unknown): number {
  const started = performance.now();
  let times = 0;
  while (performance.now() - started < seconds * 1000) {
    for (let i = 0; i < 100; i++) work();
    times += 100;
  }
  return times / ((performance.now() - started) / 1000);
}

/** How often a second it can be done with so many under way on each of these. */
async function concurrentRate<T>(
  seconds: number,
  underWay: number,
  on: readonly T[],
  work: (each: T) => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  let times = 0;
  const repeat = async (each: T) => {
    while (performance.now() - started < seconds * 1000) {
      await work(each);
      times++;
    }
  };
  await Promise.all(on.flatMap((each) => Array.from({ length: underWay }, () => repeat(each))));
  return times / ((performance.now() - started) / 1000);
}

/** Reads an answer to its end. */
function drain(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200 && bytes === OBJECT_BYTES) resolve();
        else reject(new Error(`${url} answered ${response.statusCode} and ${bytes} bytes`));
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

await runAlone(import.meta.url, services);
