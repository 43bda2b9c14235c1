/**
 * The connection of an actor to its backend: when it is lost, it is opened again with exponential backoff. A retired
 * connection is closed when the last call on it has ended.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { State as ConnectionState } from '../contracts/service-process.js';
import { toError } from '../errors.js';
import type { Connection } from './driver.js';
import { isNetworkFailure } from './failures.js';
import { ServiceError } from './service-error.js';

export type { ConnectionState };

/** A connection leased to one call. */
export interface ConnectionLease {
  readonly connection: Connection;
  /** To be called once, when the call has ended. */
  release(): void;
  /** Retires a broken connection. */
  lost(error: Error): void;
}

export interface ReconnectingOptions {
  /** One attempt, with a timeout; rejects with a ServiceError. */
  readonly open: (onLost: (error: Error) => void) => Promise<OpenedConnection>;
  readonly onState: (state: ConnectionState) => void;
}

/** A connection that has been tested. */
export interface OpenedConnection {
  readonly connection: Connection;
  /** Product and version of the backend. */
  readonly message: string;
  /** Duration of one round trip, milliseconds. */
  readonly latencyMs: number;
}

/** Backoff between attempts: doubled each time, from the minimum to the maximum. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/** A connection lost within this time counts as a failed attempt. */
const MIN_LIFETIME_MS = 5_000;
/** Spreads the attempts of actors that have lost the same backend. */
const JITTER = 0.2;

/** One connection and the number of its calls. */
interface Generation {
  readonly connection: Connection;
  calls: number;
  isRetired: boolean;
  /** When it was opened; `performance.now()`. */
  readonly since: number;
}

export class ReconnectingConnection {
  readonly #options: ReconnectingOptions;
  #state: ConnectionState = { kind: 'connecting' };
  #current: Generation | undefined;
  readonly #closing = new Set<Promise<void>>();
  readonly #generations = new Set<Generation>();
  readonly #ending = new AbortController();
  #connecting: Promise<void>;
  #isVerifying = false;
  readonly #waiting: (() => void)[] = [];

  constructor(options: ReconnectingOptions) {
    this.#options = options;
    this.#connecting = this.#connect(0);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Resolves when the first attempt, at the start or after a loss, has succeeded or failed. */
  async settled(): Promise<void> {
    if (this.#state.kind !== 'connecting' || this.#ending.signal.aborted) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Leases the connection to a call; undefined while there is none. */
  acquire(): ConnectionLease | undefined {
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

  /** Checks over a new connection whether the backend still answers; retires the current one if it does not. */
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

  /** Stops reconnecting and closes all connections. */
  async close(): Promise<void> {
    this.#ending.abort();
    for (const settle of this.#waiting.splice(0)) settle();
    await this.#connecting;
    for (const generation of this.#generations) this.#close(generation);
    await Promise.all(this.#closing);
  }

  /** @param pause before the first attempt, milliseconds */
  async #connect(pause: number): Promise<void> {
    for (let next = MIN_BACKOFF_MS; !this.#ending.signal.aborted; next = Math.min(next * 2, MAX_BACKOFF_MS)) {
      const jitter = 1 + JITTER * (2 * Math.random() - 1);
      // Rejects on close.
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
      const opened = await this.#options.open((error) => generation && this.#lost(generation, error));
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
    const wasShort = performance.now() - generation.since < MIN_LIFETIME_MS;
    // Calls wait for the first attempt, unless the backend drops connections right after accepting them.
    this.#setState(wasShort ? { kind: 'unreachable', reason: error.message } : { kind: 'connecting' });
    this.#connecting = this.#connect(wasShort ? MAX_BACKOFF_MS / 4 : 0);
  }

  async #verify(generation: Generation): Promise<void> {
    try {
      const { connection } = await this.#options.open(() => undefined);
      await connection.close();
    } catch (thrown) {
      // A backend that refuses another connection is alive: it may be at its connection limit.
      const isSilent = thrown instanceof ServiceError && thrown.kind === 'deadline';
      if (isSilent || isNetworkFailure(thrown)) this.#lost(generation, toError(thrown));
    }
  }

  #setState(state: ConnectionState): void {
    this.#state = state;
    if (state.kind !== 'connecting') {
      for (const settle of this.#waiting.splice(0)) settle();
    }
    this.#options.onState(state);
  }

  #close(generation: Generation): void {
    if (!this.#generations.delete(generation)) return;
    const closed = generation.connection.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

/** The error of a call while there is no connection. */
export function notConnected(state: ConnectionState): ServiceError {
  const reason = state.kind === 'unreachable' ? state.reason : 'it is still being connected';
  return new ServiceError('unavailable', `the backend cannot be reached: ${reason}`);
}
