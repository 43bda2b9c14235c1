/**
 * The link of an actor to its backend: connects, and when the connection breaks, connects again with growing pauses until
 * it is closed. A connection that is given up is closed when the last call on it is over.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import type { Connection } from './driver.js';
import { ServiceError } from './service-error.js';

/** How a link stands. */
export type LinkState =
  /** The first attempt is under way. */
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
/** Actors that lost the same backend shall not come back in step. */
const JITTER = 0.2;

/** One connection and how many calls it has. */
interface Generation {
  readonly connection: Connection;
  calls: number;
  isRetired: boolean;
}

export class Link {
  #state: LinkState = { kind: 'connecting' };
  #current: Generation | undefined;
  readonly #closing = new Set<Promise<void>>();
  readonly #generations = new Set<Generation>();
  readonly #ending = new AbortController();
  #connecting: Promise<void>;
  #isVerifying = false;

  constructor(private readonly options: LinkOptions) {
    this.#connecting = this.#connect();
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Resolves when the first attempt is over, however it ended. */
  async settled(): Promise<void> {
    while (this.#state.kind === 'connecting' && !this.#ending.signal.aborted) await this.#firstAttempt;
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
    await this.#connecting;
    for (const generation of this.#generations) this.#close(generation);
    await Promise.all(this.#closing);
  }

  #firstAttemptDone: () => void = () => undefined;
  readonly #firstAttempt = new Promise<void>((resolve) => {
    this.#firstAttemptDone = resolve;
  });

  async #connect(): Promise<void> {
    for (
      let pause = FIRST_PAUSE_MS;
      !this.#ending.signal.aborted;
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
    ) {
      if (await this.#attempt()) return;
      const jitter = 1 + JITTER * (2 * Math.random() - 1);
      // Ends early, by an abort, when the link is closed.
      await delay(pause * jitter, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  async #attempt(): Promise<boolean> {
    try {
      let generation: Generation | undefined;
      const opened = await this.options.open((error) => generation && this.#lost(generation, error));
      generation = { connection: opened.connection, calls: 0, isRetired: false };
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
    } finally {
      this.#firstAttemptDone();
    }
  }

  #lost(generation: Generation, error: Error): void {
    if (generation.isRetired) return;
    generation.isRetired = true;
    if (generation.calls === 0) this.#close(generation);
    if (generation !== this.#current) return;
    this.#current = undefined;
    this.#setState({ kind: 'unreachable', reason: error.message });
    this.#connecting = this.#connect();
  }

  async #verify(generation: Generation): Promise<void> {
    try {
      const { connection } = await this.options.open(() => undefined);
      await connection.close();
    } catch (thrown) {
      this.#lost(generation, toError(thrown));
    }
  }

  #setState(state: LinkState): void {
    this.#state = state;
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
