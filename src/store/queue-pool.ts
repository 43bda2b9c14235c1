/** The connection pool of BullMQ's PostgreSQL backend. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

/** The PostgreSQL schema that BullMQ keeps its tables in. */
const QUEUE_SCHEMA = 'bullmq';
const RETRY_MS = 500;

/** Opens a pool whose connections see BullMQ's schema; BullMQ leaves closing it to its owner. */
export function openQueuePool(connectionString: string): pg.Pool {
  return new pg.Pool({
    connectionString,
    options: `-c search_path=${QUEUE_SCHEMA}`,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    application_name: 'edge-gateway queue',
    max: 6,
  });
}

/**
 * BullMQ connects once to look at its schema, and takes a failure of that for final: each call fails from then on, and
 * a worker repeats them without a pause, which leaves its process no time for anything else. So the first connection is
 * tried until there is one. Failures are errors of the pool.
 */
export function untilConnected(pool: pg.Pool): pg.Pool {
  const connect = pool.connect.bind(pool) as (callback?: unknown) => Promise<pg.PoolClient>;
  let hasConnected = false;
  const patiently = async (): Promise<pg.PoolClient> => {
    for (;;) {
      try {
        const client = await connect();
        hasConnected = true;
        return client;
      } catch (error) {
        if (hasConnected || pool.ending) throw error;
        pool.emit('error', error as Error, undefined as never);
        await delay(RETRY_MS);
      }
    }
  };
  // A call with a callback is for a query, which BullMQ makes only after it has connected.
  pool.connect = ((callback?: unknown) =>
    callback ? connect(callback) : patiently()) as typeof pool.connect;
  return pool;
}
