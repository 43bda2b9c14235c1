/**
 * The link of an actor to its backend: connects, and when the connection breaks, connects again with growing pauses until
 * it is closed. A connection that is given up is closed when the last call on it is over.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { isNetworkFailure } from './connect-errors.js';
import type { Connection } from './driver.js';
import { ServiceError } from './service-error.js';

/** How a link stands. */
export type LinkState =
  /** The first attempt is under way, at the beginning or after a connection was lost. */
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly message: string; readonly latencyMs: number }
  | { readonly kind: 'unreachable'; readonly reason: string };

/** A connection and the calls that use it. */
export interface Held {
  readonly connection: Connection;
  /** To be called once, when the call is over. */
  release(): void;
  /** The connection is of no more use. */
  lost(error: Error): void;
}

export interface LinkOptions {
  /** One attempt; rejects with a ServiceError. Bounded in time. */
  readonly open: (onLost: (error: Error) => void) => Promise<OpenedConnection>;
  readonly onState: (state: LinkState) => void;
}

/** A connection that has just answered. */
export interface OpenedConnection {
  readonly connection: Connection;
  /** What answered, for people. */
  readonly message: string;
  /** Duration of a round trip over the open connection, milliseconds. */
  readonly latencyMs: number;
}

/** Pauses between attempts: this long at first, then twice as long each time. */
const FIRST_PAUSE_MS = 100;
/** A backend that is back is noticed after this long at the latest. */
const LONGEST_PAUSE_MS = 2_000;
/** A connection that is lost so soon is a sign that the next will be, too. */
const SHORT_MS = 5_000;
/** Actors that lost the same backend shall not come back in step. */
const JITTER = 0.2;

/** One connection and how many calls it has. */
interface Generation {
  readonly connection: Connection;
  calls: number;
  isRetired: boolean;
  /** When it was opened; `performance.now()`. */
  readonly since: number;
}

export class Link {
  #state: LinkState = { kind: 'connecting' };
  #current: Generation | undefined;
  readonly #closing = new Set<Promise<void>>();
  readonly #generations = new Set<Generation>();
  readonly #ending = new AbortController();
  #connecting: Promise<void>;
  #isVerifying = false;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly options: LinkOptions) {
    this.#connecting = this.#connect(0);
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Resolves when the attempt is over that the link has just begun with, or begun again, however it ended. */
  async settled(): Promise<void> {
    if (this.#state.kind !== 'connecting' || this.#ending.signal.aborted) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Takes the connection for a call; undefined while there is none. */
  hold(): Held | undefined {
    const generation = this.#current;
    if (!generation) return undefined;
    generation.calls++;
    return {
      connection: generation.connection,
      release: () => {
        generation.calls--;
        if (generation.isRetired && generation.calls === 0) this.#close(generation);
      },
      lost: (error) => this.#lost(generation, error),
    };
  }

  /** A call ran over its deadline: finds out whether the backend is still there, by a connection of its own. */
  verify(): void {
    const generation = this.#current;
    if (this.#isVerifying || !generation) return;
    this.#isVerifying = true;
    const ended = this.#verify(generation).finally(() => {
      this.#isVerifying = false;
      this.#closing.delete(ended);
    });
    this.#closing.add(ended);
  }

  /** Ends all attempts and closes all connections. */
  async close(): Promise<void> {
    this.#ending.abort();
    for (const settle of this.#waiting.splice(0)) settle();
    await this.#connecting;
    for (const generation of this.#generations) this.#close(generation);
    await Promise.all(this.#closing);
  }

  /** @param pause before the first attempt, milliseconds */
  async #connect(pause: number): Promise<void> {
    for (
      let next = FIRST_PAUSE_MS;
      !this.#ending.signal.aborted;
      next = Math.min(next * 2, LONGEST_PAUSE_MS)
    ) {
      const jitter = 1 + JITTER * (2 * Math.random() - 1);
      // Ends early, by an abort, when the link is closed.
      if (pause > 0)
        await delay(pause * jitter, undefined, { signal: this.#ending.signal }).catch(() => undefined);
      if (await this.#attempt()) return;
      pause = Math.max(pause, next);
    }
  }

  async #attempt(): Promise<boolean> {
    if (this.#ending.signal.aborted) return true;
    try {
      let generation: Generation | undefined;
      const opened = await this.options.open((error) => generation && this.#lost(generation, error));
      generation = { connection: opened.connection, calls: 0, isRetired: false, since: performance.now() };
      this.#generations.add(generation);
      if (this.#ending.signal.aborted) return true;
      this.#current = generation;
      const { message, latencyMs } = opened;
      this.#setState({ kind: 'connected', message, latencyMs });
      return true;
    } catch (thrown) {
      if (!this.#ending.signal.aborted)
        this.#setState({ kind: 'unreachable', reason: toError(thrown).message });
      return false;
    }
  }

  #lost(generation: Generation, error: Error): void {
    if (generation.isRetired) return;
    generation.isRetired = true;
    if (generation.calls === 0) this.#close(generation);
    if (generation !== this.#current) return;
    this.#current = undefined;
    const wasShort = performance.now() - generation.since < SHORT_MS;
    // Calls wait for the first attempt, which mostly succeeds, unless the backend accepts connections only to drop them.
    this.#setState(wasShort ? { kind: 'unreachable', reason: error.message } : { kind: 'connecting' });
    this.#connecting = this.#connect(wasShort ? LONGEST_PAUSE_MS / 4 : 0);
  }

  async #verify(generation: Generation): Promise<void> {
    try {
      const { connection } = await this.options.open(() => undefined);
      await connection.close();
    } catch (thrown) {
      // A backend that refuses one more connection is there: it may have too many.
      const isSilent = thrown instanceof ServiceError && thrown.kind === 'deadline';
      if (isSilent || isNetworkFailure(thrown)) this.#lost(generation, toError(thrown));
    }
  }

  #setState(state: LinkState): void {
    this.#state = state;
    if (state.kind !== 'connecting') {
      for (const settle of this.#waiting.splice(0)) settle();
    }
    this.options.onState(state);
  }

  #close(generation: Generation): void {
    if (!this.#generations.delete(generation)) return;
    const closed = generation.connection.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

/** The error of a call while there is no connection. */
export function notConnected(state: LinkState): ServiceError {
  const reason = state.kind === 'unreachable' ? state.reason : 'it is still being connected';
  return new ServiceError('unavailable', `the backend cannot be reached: ${reason}`);
}
