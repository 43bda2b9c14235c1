/**
 * Notices when PostgreSQL hangs. A server that is gone closes its connections; one that stands still, or a network that
 * drops everything, leaves each statement waiting for ever, and whoever has asked for it. How long a statement may take
 * cannot be said in general, so when one takes long the server is asked something else, over a connection of its own. If it
 * does not answer that either, all connections are given up, until it answers again.
 */
import pg from 'pg';

/** A connection that is held longer than this is a reason to ask. */
const LONG_MS = 2_000;
/** The server has to answer within so many of these steps. A blocked event loop takes one step, however long it is. */
const ANSWER_STEPS = 4;
const STEP_MS = 500;

/** What the pool of knex tells of its connections. */
export interface ConnectionPool {
  on(event: 'acquireSuccess', listener: (eventId: number, connection: pg.Client) => void): void;
  on(event: 'release', listener: (connection: pg.Client) => void): void;
}

export class HangWatch {
  /** Connections in use, since when. */
  readonly #inUse = new Map<pg.Client, number>();
  readonly #timer: NodeJS.Timeout;
  #isAsking = false;
  #isHanging = false;

  constructor(
    pool: ConnectionPool,
    private readonly connectionString: string,
    private readonly onError: (error: Error) => void,
  ) {
    pool.on('acquireSuccess', (_event, connection) => {
      this.#inUse.set(connection, performance.now());
      if (this.#isHanging) giveUp(connection);
    });
    pool.on('release', (connection) => this.#inUse.delete(connection));
    this.#timer = setInterval(() => void this.#look(), STEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isAsking || !(this.#isHanging || this.#isAnyHeldLong())) return;
    this.#isAsking = true;
    try {
      const answers = await answersInTime(this.connectionString);
      if (!answers && !this.#isHanging)
        this.onError(new Error('PostgreSQL does not answer; its connections are given up'));
      this.#isHanging = !answers;
      if (!answers) for (const connection of this.#inUse.keys()) giveUp(connection);
    } finally {
      this.#isAsking = false;
    }
  }

  #isAnyHeldLong(): boolean {
    const latest = performance.now() - LONG_MS;
    for (const since of this.#inUse.values()) if (since < latest) return true;
    return false;
  }
}

/** Whoever waits for a statement on it gets an error at once; the pool replaces it. */
function giveUp(connection: pg.Client): void {
  connection.end().catch(() => undefined); // it is of no use however it ends
}

/** Whether the server answers a connection attempt, be it with a refusal in its own words. */
async function answersInTime(connectionString: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString,
    application_name: 'edge-gateway probe',
    // Closes the socket of an attempt that was given up.
    connectionTimeoutMillis: (ANSWER_STEPS + 1) * STEP_MS,
  });
  client.on('error', () => undefined); // what `connect` has reported, or the end of an attempt that came too late
  const attempt = client.connect().then(
    () => true,
    (error: unknown) => error instanceof pg.DatabaseError,
  );
  const limit = new AbortController();
  try {
    return await Promise.race([attempt, stepsPass(limit.signal).then(() => false)]);
  } finally {
    limit.abort();
    giveUp(client);
  }
}

async function stepsPass(signal: AbortSignal): Promise<void> {
  for (let step = 0; step < ANSWER_STEPS && !signal.aborted; step++)
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
}
