/**
 * Announcements: "this row changed", sent with NOTIFY. They only shorten waits: listeners also poll, so a lost
 * announcement causes a delay and nothing else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import pg from 'pg';

/** The kind of a changed row; also the name of the notification channel. */
export type Topic =
  | 'endpoint'
  /** Something was changed by the API; the id says nothing. */
  | 'audit'
  | 'build'
  | 'import'
  /** An import has ended, which `import` announces too. */
  | 'import_end'
  | 'apply'
  | 'observation'
  | 'service'
  | 'service_observation'
  | 'node'
  | 'log'
  | 'certificate'
  | 'acme_challenge';

/** One changed row. */
export interface Announcement {
  readonly topic: Topic;
  readonly id: string;
}

/** Announcements are collected this long for one statement. */
const BATCH_MS = 2;
/**
 * The same for the progress of imports, which only people follow: it changes with every step of every handler, and each
 * announcement wakes all listeners.
 */
const BATCH_PROGRESS_MS = 100;

/**
 * Sends announcements outside of the transactions they are about, many in one statement. A NOTIFY inside a writing
 * transaction would take PostgreSQL's global notification lock across the flush of its commit, which makes
 * concurrent commits wait for each other.
 */
export class Announcer {
  readonly #knex: Knex;
  readonly #onError: (error: Error) => void;
  #waiting = new Map<string, Announcement>();
  #sending: Promise<void> | undefined;
  /** An announcement other than progress is pending; progress is sent with it. */
  #isDue = false;
  /** Set while progress is held back. */
  #progressTimer: NodeJS.Timeout | undefined;

  constructor(knex: Knex, onError: (error: Error) => void) {
    this.#knex = knex;
    this.#onError = onError;
  }

  announce(announcement: Announcement): void {
    this.#waiting.set(`${announcement.topic}:${announcement.id}`, announcement);
    if (announcement.topic === 'import')
      this.#progressTimer ??= setTimeout(() => this.#start(), BATCH_PROGRESS_MS);
    else this.#start();
  }

  /** Resolves when all that was announced so far has been sent. */
  async flushed(): Promise<void> {
    if (this.#progressTimer) this.#start();
    await this.#sending;
  }

  #start(): void {
    this.#isDue = true;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    while (this.#isDue) {
      // Concurrent writes share one statement; a single one is hardly delayed.
      await delay(BATCH_MS);
      const batch = [...this.#waiting.values()];
      this.#waiting.clear();
      this.#isDue = false;
      clearTimeout(this.#progressTimer);
      this.#progressTimer = undefined;
      try {
        await this.#knex.raw(
          'SELECT pg_notify(topic, id) FROM unnest(?::text[], ?::text[]) AS t (topic, id)',
          [batch.map(({ topic }) => topic), batch.map(({ id }) => id)],
        );
      } catch (thrown) {
        this.#onError(
          new Error('Changes could not be announced; listeners find them with their next poll', {
            cause: thrown,
          }),
        );
      }
    }
    this.#sending = undefined;
  }
}

/** The events of a `listen`. */
export interface ListenEvents {
  /** A row changed. */
  readonly changed: (announcement: Announcement) => void;
  /** The connection is up, for the first time or again: announcements may have been missed. */
  readonly connected: () => void;
  /** The connection failed; it is retried. */
  readonly failed: (error: Error) => void;
}

/** A running `listen`. */
export interface Subscription {
  stop(): Promise<void>;
}

const RECONNECT_DELAY_MS = 500;

/** Listens to topics on a connection of its own, and reconnects whenever it breaks, until stopped. */
export function listen(
  connectionString: string,
  topics: readonly Topic[],
  events: ListenEvents,
): Subscription {
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
    // One failure can emit `error`, `end` or both.
    let lost = false;
    const onLost = (error?: Error) => {
      if (lost || stopped) return;
      lost = true;
      events.failed(error ?? new Error('PostgreSQL closed the connection'));
      current.end().catch(() => undefined); // already broken
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
