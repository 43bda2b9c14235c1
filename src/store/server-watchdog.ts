/**
 * Detects a PostgreSQL server that does not respond. A server that stops closes its connections; with one that hangs,
 * or a network that drops all packets, statements never return. There is no general limit for a statement; when one
 * takes long, a second connection probes the server. If the probe fails too, all connections are closed, and new ones
 * as well, until a probe succeeds.
 */
import pg from 'pg';

/** A connection in use for longer than this triggers a probe. */
const LONG_USE_MS = 2_000;
/** The time for a probe, in steps: a blocked event loop takes one step, however long it is blocked. */
const PROBE_STEPS = 4;
const STEP_MS = 500;

/** The events of knex's pool. */
export interface ConnectionPool {
  on(event: 'acquireSuccess', listener: (eventId: number, connection: pg.Client) => void): void;
  on(event: 'release', listener: (connection: pg.Client) => void): void;
}

export class ServerWatchdog {
  readonly #connectionString: string;
  readonly #onError: (error: Error) => void;
  /** Connections in use, and since when. */
  readonly #inUse = new Map<pg.Client, number>();
  readonly #timer: NodeJS.Timeout;
  #isProbing = false;
  #isUnresponsive = false;

  constructor(pool: ConnectionPool, connectionString: string, onError: (error: Error) => void) {
    this.#connectionString = connectionString;
    this.#onError = onError;
    pool.on('acquireSuccess', (_event, connection) => {
      this.#inUse.set(connection, performance.now());
      if (this.#isUnresponsive) close(connection);
    });
    pool.on('release', (connection) => this.#inUse.delete(connection));
    this.#timer = setInterval(() => void this.#check(), STEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#isProbing || !(this.#isUnresponsive || this.#isAnyInLongUse())) return;
    this.#isProbing = true;
    try {
      const responds = await probe(this.#connectionString);
      if (!responds && !this.#isUnresponsive)
        this.#onError(new Error('PostgreSQL does not respond; its connections are closed'));
      this.#isUnresponsive = !responds;
      if (!responds) for (const connection of this.#inUse.keys()) close(connection);
    } finally {
      this.#isProbing = false;
    }
  }

  #isAnyInLongUse(): boolean {
    const latest = performance.now() - LONG_USE_MS;
    for (const since of this.#inUse.values()) if (since < latest) return true;
    return false;
  }
}

/** Its statements fail at once; the pool replaces the connection. */
function close(connection: pg.Client): void {
  connection.end().catch(() => undefined); // already unusable
}

/** Whether the server responds to a connection attempt, even with an error. */
async function probe(connectionString: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString,
    application_name: 'edge-gateway probe',
    // Closes the socket of an attempt that has timed out.
    connectionTimeoutMillis: (PROBE_STEPS + 1) * STEP_MS,
  });
  client.on('error', () => undefined); // reported by `connect`, or the end of an attempt that timed out
  const attempt = client.connect().then(
    () => true,
    (error: unknown) => error instanceof pg.DatabaseError,
  );
  const limit = new AbortController();
  try {
    return await Promise.race([attempt, stepsPass(limit.signal).then(() => false)]);
  } finally {
    limit.abort();
    close(client);
  }
}

async function stepsPass(signal: AbortSignal): Promise<void> {
  for (let step = 0; step < PROBE_STEPS && !signal.aborted; step++)
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
}
