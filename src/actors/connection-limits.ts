/**
 * Limits the connections of handlers to the actor host: per endpoint, and in total, so that the host keeps file
 * descriptors for its own work. A connection belongs to an endpoint once its token has arrived. The number of
 * connections without a token is limited too; a new one evicts the oldest, because the SDK sends the token at once.
 */
import { descriptorsForConnections } from '../util/file-descriptors.js';

/** Maximum numbers of connections. */
export interface ConnectionMaximums {
  readonly perEndpoint: number;
  readonly withToken: number;
  readonly withoutToken: number;
}

/** A handler has two processes while it is replaced. */
const PROCESSES = 2;
/** Connections for one call at a time, and for an open transaction. */
const CONNECTIONS_PER_REQUEST = 2;
/** Connections for threads that handlers start themselves. */
const ADDITIONAL_CONNECTIONS = 32;
/** The largest share of all connections that one endpoint gets. */
const MAX_SHARE_PER_ENDPOINT = 1 / 4;
const MAX_WITHOUT_TOKEN = 1_024;

/**
 * @param threads concurrent requests of one handler process
 * @param all maximum number of all connections
 */
export function connectionMaximums(threads: number, all = descriptorsForConnections()): ConnectionMaximums {
  const withoutToken = Math.min(MAX_WITHOUT_TOKEN, Math.floor(all / 2));
  const withToken = all - withoutToken;
  const needed = PROCESSES * (CONNECTIONS_PER_REQUEST * threads + ADDITIONAL_CONNECTIONS);
  return {
    perEndpoint: Math.max(1, Math.min(needed, Math.floor(withToken * MAX_SHARE_PER_ENDPOINT))),
    withToken,
    withoutToken,
  };
}

export interface LimitedConnection {
  /** Closes it at once. */
  drop(): void;
}

export class ConnectionLimits {
  readonly #maximums: ConnectionMaximums;
  /** Oldest first. */
  readonly #withoutToken = new Set<LimitedConnection>();
  readonly #byEndpoint = new Map<string, number>();
  #identified = 0;

  constructor(maximums: ConnectionMaximums) {
    this.#maximums = maximums;
  }

  /** Adds a new connection, which has not sent its token yet; may evict the oldest of these. */
  enter(connection: LimitedConnection): void {
    this.#withoutToken.add(connection);
    if (this.#withoutToken.size <= this.#maximums.withoutToken) return;
    const [oldest] = this.#withoutToken;
    if (!oldest) return;
    this.#withoutToken.delete(oldest);
    oldest.drop();
  }

  /**
   * Assigns a connection to the endpoint of its token.
   * @returns why it must be closed; undefined when it is within the limits, and `leave` needs the endpoint later
   */
  identify(connection: LimitedConnection, endpointId: string): string | undefined {
    this.#withoutToken.delete(connection);
    const { perEndpoint, withToken } = this.#maximums;
    const own = this.#byEndpoint.get(endpointId) ?? 0;
    if (own >= perEndpoint)
      return `its endpoint has ${own} connections with the actor host already, as many as it may`;
    if (this.#identified >= withToken) return 'the actor host has as many connections as it may';
    this.#byEndpoint.set(endpointId, own + 1);
    this.#identified++;
    return undefined;
  }

  /** Removes a closed connection. @param endpointId given when `identify` has accepted it */
  leave(connection: LimitedConnection, endpointId: string | undefined): void {
    this.#withoutToken.delete(connection);
    if (endpointId === undefined) return;
    this.#identified--;
    const own = (this.#byEndpoint.get(endpointId) ?? 0) - 1;
    if (own > 0) this.#byEndpoint.set(endpointId, own);
    else this.#byEndpoint.delete(endpointId);
  }
}
