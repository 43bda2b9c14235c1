/**
 * Announcements: "this row changed", carried by LISTEN and NOTIFY. They only ever shorten a wait: whoever
 * listens also reads the state again from time to time, so a lost announcement costs a delay, never a change.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import pg from 'pg';

/** What changed; also the name of the notification channel. */
export type Topic =
  | 'endpoint'
  | 'build'
  | 'import'
  /** An import has ended; `import` announces that too. */
  | 'import_end'
  | 'observation'
  | 'service'
  | 'service_observation'
  | 'node';

/** One changed row. */
export interface Announcement {
  readonly topic: Topic;
  readonly id: string;
}

/** How long announcements are gathered before they are sent. */
const GATHER_MS = 2;
/**
 * The same for how far an import is, which only people follow: it changes with each step of each handler, and what is
 * announced wakes all who listen.
 */
const GATHER_PROGRESS_MS = 100;

/**
 * Sends announcements outside of the transactions they are about, many in one statement. A NOTIFY inside a writing
 * transaction would take PostgreSQL's global notification lock across the flush of its commit, which makes
 * concurrent commits wait for each other.
 */
export class Announcer {
  #waiting = new Map<string, Announcement>();
  #sending: Promise<void> | undefined;
  /** Something waits that is not to wait longer; the rest goes with it. */
  #isDue = false;
  /** Set while progress waits. */
  #later: NodeJS.Timeout | undefined;

  constructor(
    private readonly knex: Knex,
    private readonly onError: (error: Error) => void,
  ) {}

  announce(announcement: Announcement): void {
    this.#waiting.set(`${announcement.topic}:${announcement.id}`, announcement);
    if (announcement.topic === 'import') this.#later ??= setTimeout(() => this.#start(), GATHER_PROGRESS_MS);
    else this.#start();
  }

  /** Resolves when all that was announced so far has been sent. */
  async flushed(): Promise<void> {
    if (this.#later) this.#start();
    await this.#sending;
  }

  #start(): void {
    this.#isDue = true;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    while (this.#isDue) {
      // Many writes at once share one statement; a single one is hardly delayed.
      await delay(GATHER_MS);
      const batch = [...this.#waiting.values()];
      this.#waiting.clear();
      this.#isDue = false;
      clearTimeout(this.#later);
      this.#later = undefined;
      try {
        await this.knex.raw(
          'SELECT pg_notify(topic, id) FROM unnest(?::text[], ?::text[]) AS t (topic, id)',
          [batch.map(({ topic }) => topic), batch.map(({ id }) => id)],
        );
      } catch (thrown) {
        this.onError(
          new Error('Changes could not be announced; listeners find them with their next look', {
            cause: thrown,
          }),
        );
      }
    }
    this.#sending = undefined;
  }
}

/** What a `listen` reports. */
export interface ListenEvents {
  /** A row changed. */
  readonly changed: (announcement: Announcement) => void;
  /** The connection is up, for the first time or again: read the state, announcements may have been missed. */
  readonly connected: () => void;
  /** The connection failed; it is tried again. */
  readonly failed: (error: Error) => void;
}

/** A running `listen`. */
export interface Listening {
  stop(): Promise<void>;
}

const RECONNECT_DELAY_MS = 500;

/** Listens to topics on a connection of its own, which is made again whenever it breaks, until stopped. */
export function listen(connectionString: string, topics: readonly Topic[], events: ListenEvents): Listening {
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let connecting: Promise<void> = connect();

  async function connect(): Promise<void> {
    const current = new pg.Client({
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      application_name: 'edge-gateway listen',
    });
    client = current;
    current.on('notification', ({ channel, payload }) => {
      if (payload) events.changed({ topic: channel as Topic, id: payload });
    });
    // Both can follow one failure, and each may come without the other.
    let lost = false;
    const onLost = (error?: Error) => {
      if (lost || stopped) return;
      lost = true;
      events.failed(error ?? new Error('PostgreSQL closed the connection'));
      current.end().catch(() => undefined); // already broken: nothing to learn from its end
      timer = setTimeout(() => {
        connecting = connect();
      }, RECONNECT_DELAY_MS);
    };
    current.on('error', onLost);
    current.on('end', () => onLost());
    try {
      await current.connect();
      for (const topic of topics) await current.query(`LISTEN ${current.escapeIdentifier(topic)}`);
      if (!stopped) events.connected();
    } catch (thrown) {
      onLost(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await connecting;
      await client?.end();
    },
  };
}
