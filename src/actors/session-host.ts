/** What the connections of handlers need of the process that serves them: the actor host, or that of a service. */
import type { HandlerInstance } from '../secrets/service-token.js';
import type { Log } from '../util/log.js';
import type { LogRateLimiter } from '../util/log-rate-limiter.js';
import type { MemoryBudget } from '../util/memory-budget.js';
import type { Actor } from './actor.js';
import type { ConnectionLimits } from './connection-limits.js';

/** Who answers the calls of a connection. */
export interface SessionHost {
  /** Who a token was issued for; undefined when the token is not valid. */
  authenticate(token: string): HandlerInstance | undefined;
  /** The nonces of the handler processes that run. */
  validNonces(): Promise<ReadonlySet<string>>;
  /**
   * Who answers the calls of a pool.
   * @throws ServiceError unbound, or inactive
   * @throws Moved
   */
  actorFor(endpointId: string, poolId: string): Actor | RemoteActor;
}

/** The actor of a service that has a process of its own. */
export interface RemoteActor {
  /** Where it is reached. Rejects with a ServiceError. */
  address(caller: HandlerInstance, timeoutMs: number): Promise<ServiceAddress>;
}

/** Where the actor of a service is reached. */
export interface ServiceAddress {
  /** The name of a socket in the folder of that of the actor host. */
  readonly socket: string;
  readonly token: string;
}

/** The answer to a call that belongs elsewhere: to this address, or, without one, to the actor host. */
export class CallRedirected extends Error {
  override readonly name = 'Moved';

  constructor(readonly to?: ServiceAddress) {
    super('the call belongs elsewhere');
  }
}

/** Limits of one session. */
export interface CallLimits {
  /** Default deadline of a call, milliseconds. */
  readonly defaultCallMs: number;
  /** Maximum deadline of a call, time to receive one, and duration of a transaction, milliseconds. */
  readonly longestCallMs: number;
  /** Shared by all sessions: payloads of calls in progress, and answers that are not sent yet. */
  readonly memory: MemoryBudget;
}

/** Shared by all sessions of a server. */
export interface SessionServer {
  readonly host: SessionHost;
  readonly limits: CallLimits;
  readonly connections: ConnectionLimits;
  /** Whether clients are asked to leave. */
  isRetiring: boolean;
  /** Limits warnings about handlers. */
  readonly warningLimiter: LogRateLimiter;
  readonly log: Log;
}
