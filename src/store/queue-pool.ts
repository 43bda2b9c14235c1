/** The connection pool of BullMQ's PostgreSQL backend. */
import pg from 'pg';

/** The PostgreSQL schema that BullMQ keeps its tables in. */
const QUEUE_SCHEMA = 'bullmq';

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
