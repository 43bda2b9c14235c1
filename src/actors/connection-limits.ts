/**
 * How many connections handlers may have with the actor host: each endpoint so many, and all together no more than leave
 * it file descriptors for its own work. Whose a connection is, nobody knows before its token has come. Of those without
 * one there are few, and the oldest has to go for a new one: who is honest sends the token at once.
 */
import { descriptorsForConnections } from '../file-descriptors.js';

/** How many there may be. */
export interface ConnectionNumbers {
  readonly ofOneEndpoint: number;
  readonly ofAllEndpoints: number;
  readonly withoutToken: number;
}

/** While a handler is replaced there are two processes of it. */
const PROCESSES = 2;
/** A request makes one call at a time, besides the transaction that it may have open. */
const OF_ONE_REQUEST = 2;
/** For threads that handlers start by themselves. */
const MORE = 32;
/** No endpoint gets more than this part of all. */
const SHARE_OF_ONE = 1 / 4;
const MOST_WITHOUT_TOKEN = 1_024;

/**
 * @param threads requests that one handler process works on at the same time
 * @param all connections that there may be together
 */
export function connectionNumbers(threads: number, all = descriptorsForConnections()): ConnectionNumbers {
  const withoutToken = Math.min(MOST_WITHOUT_TOKEN, Math.floor(all / 2));
  const ofAllEndpoints = all - withoutToken;
  const needed = PROCESSES * (OF_ONE_REQUEST * threads + MORE);
  return {
    ofOneEndpoint: Math.max(1, Math.min(needed, Math.floor(ofAllEndpoints * SHARE_OF_ONE))),
    ofAllEndpoints,
    withoutToken,
  };
}

/** A connection, as far as it matters here. */
export interface LimitedConnection {
  /** Closes it at once. */
  drop(): void;
}

/** The connections there are. */
export class ConnectionLimits {
  /** The oldest first. */
  readonly #withoutToken = new Set<LimitedConnection>();
  readonly #ofEndpoints = new Map<string, number>();
  #identified = 0;

  constructor(private readonly numbers: ConnectionNumbers) {}

  /** A connection has come; another one may have to go. */
  enter(connection: LimitedConnection): void {
    this.#withoutToken.add(connection);
    if (this.#withoutToken.size <= this.numbers.withoutToken) return;
    const [oldest] = this.#withoutToken;
    if (!oldest) return;
    this.#withoutToken.delete(oldest);
    oldest.drop();
  }

  /**
   * The token of a connection has come.
   * @returns why it cannot stay; undefined when it may, and then `leave` has to be told the endpoint
   */
  identify(connection: LimitedConnection, endpointId: string): string | undefined {
    this.#withoutToken.delete(connection);
    const { ofOneEndpoint, ofAllEndpoints } = this.numbers;
    const own = this.#ofEndpoints.get(endpointId) ?? 0;
    if (own >= ofOneEndpoint)
      return `its endpoint has ${own} connections with the actor host already, as many as it may`;
    if (this.#identified >= ofAllEndpoints) return 'the actor host has as many connections as it may';
    this.#ofEndpoints.set(endpointId, own + 1);
    this.#identified++;
    return undefined;
  }

  /** A connection is closed. @param endpointId whose it is, if it was identified and could stay */
  leave(connection: LimitedConnection, endpointId: string | undefined): void {
    this.#withoutToken.delete(connection);
    if (endpointId === undefined) return;
    this.#identified--;
    const own = (this.#ofEndpoints.get(endpointId) ?? 0) - 1;
    if (own > 0) this.#ofEndpoints.set(endpointId, own);
    else this.#ofEndpoints.delete(endpointId);
  }
}
