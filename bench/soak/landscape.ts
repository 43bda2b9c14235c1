/** The environment of the soak: one machine with all processes, services with real servers, and running endpoints. */
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { startRedisBackend } from '../../test/support/backends/redis.js';
import { createDatabase, withClient } from '../../test/support/postgres.js';
import { must, type Stack, startStack } from '../../test/support/processes.js';
import { startRedis } from '../../test/support/redis.js';
import { giveToServices } from '../../test/support/sqlite-folder.js';
import { tempDir } from '../../test/support/temp.js';
import { activeService } from '../../test/support/test-services.js';
import { soakHandler, socketHandler } from './handlers.js';

/** Rows of the tables that handlers read. */
export const ITEMS = 1_000;
/** Small, so that bodies that are too large cost little. */
export const BODY_LIMIT = 64 * 1024;
/** Short, so that streams of replaced handlers are cut off all the time. */
const STREAM_DRAIN_MS = 2_000;
/** One of so many endpoints has handlers that sleep between two requests, after so long. */
const SLEEPS = 5;
const IDLE_MS = 20;
/** Endpoints of WebSockets. */
const SOCKETS = 4;
/** Endpoints created and started at a time. */
const AT_A_TIME = 4;

/** An endpoint that receives traffic. */
export interface SoakEndpoint {
  readonly id: string;
  readonly path: string;
  /** Variants that may respond: more than one during a deployment. */
  readonly variants: Set<string>;
  /** True while it is stopped, being stopped, or not yet started again. */
  mayBeDown: boolean;
  /** Incremented before and after its handler is replaced or stopped, which ends its streams after a while. */
  changes: number;
}

/** The stack and its resources. */
export interface Landscape {
  readonly stack: Stack;
  readonly endpoints: readonly SoakEndpoint[];
  /** Endpoints of WebSockets. */
  readonly sockets: readonly SoakEndpoint[];
  /** Folder of temporary files of all processes. */
  readonly temp: string;
  close(): Promise<void>;
}

/** Starts everything. @param count endpoints that run */
export async function openLandscape(count: number): Promise<Landscape> {
  const [queue, cache, items] = [await startRedis(), await startRedisBackend(), await createDatabase()];
  const [files, temp] = [await tempDir('soak-files'), await tempDir('soak-temp')];
  let stack: Stack | undefined;
  const close = async () => {
    await stack?.close();
    await Promise.all([queue.remove(), cache.remove(), files.remove(), temp.remove()]);
    await items.drop();
  };
  try {
    stack = await startStack({
      env: {
        REDIS_URL: queue.url,
        TMPDIR: temp.path,
        SQLITE_DIR: files.path,
        LOG_LEVEL: 'warn',
        GATEWAY_CONCURRENCY: '2',
        GATEWAY_BODY_LIMIT_BYTES: String(BODY_LIMIT),
        STREAM_DRAIN_MS: String(STREAM_DRAIN_MS),
      },
    });
    await fillPostgres(items.url);
    const sqlite = join(files.path, 'items.db');
    fillSqlite(sqlite);
    await giveToServices(files.path);
    const { hostname: host, port, username, password, pathname } = new URL(items.url);
    const services = {
      pg: await activeService(stack.api, 'postgres', {
        ...{ host, port: Number(port), database: pathname.slice(1), username, password },
        pool_size: 8,
      }),
      sqlite: await activeService(stack.api, 'sqlite', { path: sqlite }),
      cache: await activeService(stack.api, 'redis', { ...cache.config, pool_size: 4 }),
    };
    const endpoints = await defineEndpoints(stack, count, services);
    const sockets = await defineSockets(stack);
    return { stack, endpoints, sockets, temp: temp.path, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Defines endpoints with different sources, as if of many authors. */
async function defineEndpoints(
  stack: Stack,
  count: number,
  services: Readonly<Record<string, string>>,
): Promise<SoakEndpoint[]> {
  const endpoints: SoakEndpoint[] = [];
  const one = async (number: number) => {
    const [path, variant] = [`/soak/${number}`, `v${number}.0`];
    const limits = number % SLEEPS === 0 ? { idle_ms: IDLE_MS } : null;
    const id = await stack.deploy({ path: `${path}/{n}`, code: soakHandler(variant), limits });
    for (const [pool_id, service_id] of Object.entries(services))
      await must(stack.api.post(`/api/endpoints/${id}/services`, { service_id, pool_id }));
    endpoints.push({ id, path, variants: new Set([variant]), mayBeDown: false, changes: 0 });
  };
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (next < count) await one(next++);
    }),
  );
  return endpoints;
}

async function defineSockets(stack: Stack): Promise<SoakEndpoint[]> {
  const endpoints: SoakEndpoint[] = [];
  for (let number = 0; number < SOCKETS; number++) {
    const [path, variant] = [`/socket/${number}`, `s${number}.0`];
    const id = await stack.deploy({ path, code: socketHandler(variant) });
    endpoints.push({ id, path, variants: new Set([variant]), mayBeDown: false, changes: 0 });
  }
  return endpoints;
}

const TABLE =
  'CREATE TABLE items (id integer PRIMARY KEY, value integer NOT NULL, hits integer NOT NULL DEFAULT 0)';

async function fillPostgres(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(TABLE);
    await client.query(`INSERT INTO items SELECT i, i FROM generate_series(0, ${ITEMS - 1}) AS i`);
  });
}

function fillSqlite(path: string): void {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(TABLE);
  const insert = database.prepare('INSERT INTO items (id, value) VALUES (?, ?)');
  database.exec('BEGIN');
  for (let id = 0; id < ITEMS; id++) insert.run(id, id);
  database.exec('COMMIT');
  database.close();
}
