/**
 * The entries of a log as they are shown: those that were written, and those that come. What comes is taken in by
 * turns, and only so much of it, so that a page stays usable whatever a handler says; what is left out is counted.
 */
import { signal } from '@preact/signals';
import { type ApiError, call, target } from '../../api/client.js';
import { toApiError } from '../../api/query.js';
import { once } from '../../base/once.js';
import type { LogEntry } from '../../generated/routes.js';
import { type LogFilter, type LogQuery, queryOf } from './filter.js';

/** A line of the list: an entry, or what is to be said at this place. */
export type LogRow =
  | { readonly key: string; readonly entry: LogEntry; readonly note?: undefined }
  | { readonly key: string; readonly note: string; readonly entry?: undefined };

/** `past`: only what was written until a time; nothing comes. */
export type FeedState = 'past' | 'connecting' | 'live' | 'lost' | 'refused';

const ROUTE = 'GET /api/endpoints/{id}/logs';
const ROUTE_OF_ALL = 'GET /api/logs';
const FIRST = 200;
const OLDER = 500;
/** After a new connection: so many are compared with those that are there. */
const CAUGHT_UP = 1_000;
/** The time from turn to turn; the first one does not wait so long, since an empty page is looked at meanwhile. */
const TURN_MS = 100;
const FRAME_MS = 16;
/** Lines of a turn, and lines that wait while the list is paused. */
const MOST_OF_A_TURN = 1_000;
const MOST_PAUSED = 2_000;
const MOST_KEPT = 50_000;
const RECONNECT_MS = 3_000;
const TIME = once(() => new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' }));

export class LogFeed {
  /** Counts changes of `rows` and `shift`. */
  readonly revision = signal(0);
  readonly state = signal<FeedState>('connecting');
  readonly isPaused = signal(false);
  /** Lines that have come while it was paused. */
  readonly waiting = signal(0);
  /** Lines that came faster than they could be shown. */
  readonly leftOut = signal(0);
  /** Whether the oldest entry of all is there. */
  readonly isComplete = signal(false);
  readonly isLoading = signal(true);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Oldest first. */
  rows: LogRow[] = [];
  /** Rows that were added at the top, less those that were removed there. */
  shift = 0;

  #hasStarted = false;
  #pausesSoon = false;
  #pending: string[] = [];
  #skipped = 0;
  #turn: number | undefined;
  /** When the last turn was, milliseconds by the clock of `performance`. */
  #lastTurn = Number.NEGATIVE_INFINITY;
  #source: EventSource | undefined;
  #reconnect: number | undefined;
  /** Until it is said that there is nothing. */
  #quiet: number | undefined;
  /** Which entries are read next, once that is known by a cursor. */
  #older: LogQuery | undefined;
  #isReading = false;
  #lostAt: Date | undefined;
  /** Entries may be there already: the connection is a new one. */
  #known: Set<string> | undefined;
  #notes = 0;
  readonly #closed = new AbortController();

  constructor(
    /** Undefined: of all endpoints. */
    readonly endpointId: string | undefined,
    readonly filter: LogFilter,
  ) {}

  /** Begins to read, unless it has begun. @param isPaused what comes after what is there waits */
  start(isPaused = false): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#pausesSoon = isPaused;
    if (this.filter.until === undefined) this.#connect(FIRST);
    else {
      this.state.value = 'past';
      void this.older();
    }
  }

  close(): void {
    this.#closed.abort();
    this.#source?.close();
    clearTimeout(this.#turn);
    clearTimeout(this.#reconnect);
    clearTimeout(this.#quiet);
  }

  pause(): void {
    this.isPaused.value = true;
  }

  resume(): void {
    this.isPaused.value = false;
    this.#takeIn();
    this.waiting.value = 0;
  }

  /** Reads the entries before the oldest one. */
  async older(): Promise<void> {
    if (this.isComplete.peek() || this.#isReading) return;
    this.#isReading = true;
    this.isLoading.value = true;
    this.error.value = undefined;
    const query = this.#older ?? this.#beforeAll();
    try {
      const { data } = await this.#read(query);
      const known = new Set(this.rows.slice(0, 2 * OLDER).map(({ key }) => key));
      const added = data.items.filter(({ id }) => !known.has(id)).map(rowOf);
      this.rows = [...added.reverse(), ...this.rows];
      this.shift += added.length;
      this.#older = data.next_cursor === null ? undefined : { ...query, cursor: data.next_cursor };
      this.isComplete.value = data.next_cursor === null;
      this.revision.value++;
    } catch (thrown) {
      if (this.#closed.signal.aborted) return;
      this.error.value = toApiError(thrown);
    }
    this.#isReading = false;
    this.isLoading.value = false;
  }

  /** Those of the moment of the oldest one come again, and are known by their ids. */
  #beforeAll(): LogQuery {
    const oldest = this.rows.find(({ entry }) => entry)?.entry;
    const query = { ...queryOf(this.filter), limit: OLDER };
    return oldest ? { ...query, until: new Date(Date.parse(oldest.at) + 1).toISOString() } : query;
  }

  #read(query: LogQuery) {
    const { signal } = this.#closed;
    if (this.endpointId === undefined) return call(ROUTE_OF_ALL, { query }, signal);
    return call(ROUTE, { params: { id: this.endpointId }, query }, signal);
  }

  #target(query: LogQuery) {
    if (this.endpointId === undefined) return target(ROUTE_OF_ALL, { query });
    return target(ROUTE, { params: { id: this.endpointId }, query });
  }

  #connect(newest: number): void {
    const query = { ...queryOf(this.filter), limit: newest };
    const source = new EventSource(this.#target(query).path);
    this.#source = source;
    source.addEventListener('open', () => {
      this.state.value = 'live';
      this.error.value = undefined;
      // What was written follows at once.
      clearTimeout(this.#quiet);
      this.#quiet = window.setTimeout(() => {
        this.isLoading.value = false;
        if (this.#pausesSoon) this.#takeInAndPause();
      }, TURN_MS);
      if (this.#lostAt) this.#takeInSoon();
    });
    source.addEventListener('entry', ({ data }: MessageEvent<string>) => this.#receive(data));
    source.addEventListener('error', () => this.#lose(source));
  }

  /** The browser connects again, and gets what came meanwhile; unless it was refused. */
  #lose(source: EventSource): void {
    this.#lostAt ??= new Date();
    if (source.readyState !== EventSource.CLOSED) {
      if (this.state.peek() === 'live') this.state.value = 'lost';
      return;
    }
    this.state.value = 'lost';
    this.isLoading.value = false;
    this.#known = new Set(this.rows.slice(-2 * CAUGHT_UP).map(({ key }) => key));
    void this.#askWhy();
  }

  /** An event source does not say why it was refused. */
  async #askWhy(): Promise<void> {
    let again = () => this.#connect(CAUGHT_UP);
    try {
      const query = { ...queryOf(this.filter), limit: 1 };
      await this.#read(query);
      this.error.value = undefined;
    } catch (thrown) {
      if (this.#closed.signal.aborted) return;
      const error = toApiError(thrown);
      this.error.value = error;
      // The same request would be refused again.
      if (error.status >= 400 && error.status < 500 && error.status !== 401 && error.status !== 429) {
        this.state.value = 'refused';
        return;
      }
      // Not before somebody has signed in: until then, this asks nothing.
      if (error.status === 401) again = () => void this.#askWhy();
    }
    this.#reconnect = window.setTimeout(again, RECONNECT_MS);
  }

  #receive(data: string): void {
    this.#pending.push(data);
    const most = this.isPaused.peek() ? MOST_PAUSED : MOST_OF_A_TURN;
    if (this.#pending.length >= 2 * most) this.#skip(most);
    this.#takeInSoon();
  }

  #takeInSoon(): void {
    const wait = Math.max(FRAME_MS, this.#lastTurn + TURN_MS - performance.now());
    this.#turn ??= window.setTimeout(() => this.#takeIn(), wait);
  }

  /** Keeps the newest lines of those that wait. */
  #skip(most: number): void {
    const skipped = this.#pending.length - most;
    if (skipped <= 0) return;
    this.#pending = this.#pending.slice(-most);
    this.#skipped += skipped;
  }

  /** One turn: takes in what has come since the last one. */
  #takeIn(): void {
    clearTimeout(this.#turn);
    this.#turn = undefined;
    this.#lastTurn = performance.now();
    if (this.isPaused.peek()) {
      this.waiting.value = this.#pending.length + this.#skipped;
      return;
    }
    this.#skip(this.waiting.peek() > 0 ? MOST_PAUSED : MOST_OF_A_TURN);
    if (this.#lostAt && this.state.peek() === 'live') this.#sayResumed(this.#lostAt);
    if (this.#skipped > 0) this.#sayLeftOut();
    const entries = this.#pending.map((data) => JSON.parse(data) as LogEntry);
    this.#pending = [];
    for (const entry of entries) if (!this.#known?.has(entry.id)) this.rows.push(rowOf(entry));
    if (entries.length > 0) {
      this.#known = undefined;
      this.isLoading.value = false;
    }
    const tooMany = this.rows.length - MOST_KEPT;
    if (tooMany > 0) {
      this.rows = this.rows.slice(tooMany);
      this.shift -= tooMany;
      // They can be read again.
      this.#older = undefined;
      this.isComplete.value = false;
    }
    this.revision.value++;
  }

  #takeInAndPause(): void {
    this.#pausesSoon = false;
    this.#takeIn();
    this.pause();
  }

  #sayResumed(since: Date): void {
    const span = `from ${TIME().format(since)} to ${TIME().format(new Date())}`;
    this.#note(`The connection was lost ${span}. What came meanwhile follows.`);
    this.#lostAt = undefined;
  }

  #sayLeftOut(): void {
    const number = this.#skipped.toLocaleString();
    this.#note(`${number} lines are left out here: they came faster than they can be shown.`);
    this.leftOut.value += this.#skipped;
    this.#skipped = 0;
  }

  #note(note: string): void {
    this.rows.push({ key: `note ${++this.#notes}`, note });
  }
}

function rowOf(entry: LogEntry): LogRow {
  return { key: entry.id, entry };
}
