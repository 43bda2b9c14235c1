/**
 * The IPC messages between the supervisor (the primary process of a gateway) and its fronts. The supervisor sends whole
 * states of endpoints, never differences: applying one twice is harmless, and a new front gets all of them.
 */
import type { MetricSnapshot } from '../metrics/process-metrics.js';
import type { Route } from './route-table.js';

/** One handler process, as fronts know it. */
export interface InstanceRef {
  /** Unique on this machine for the life of the gateway. */
  readonly id: number;
  /** Path of its Unix socket for fronts; it may lead into the handler's sandbox. */
  readonly socket: string;
}

/** Which handler serves an endpoint. */
export type HandlerState =
  /** Nothing should run: requests get 503. */
  | { readonly kind: 'none' }
  /** It is being started: requests are queued for a moment. */
  | { readonly kind: 'starting' }
  | { readonly kind: 'running'; readonly instance: InstanceRef };

/** All that a front needs to know of an endpoint. */
export interface EndpointState extends Route {
  readonly id: string;
  /** False: defined, but disabled. */
  readonly routed: boolean;
  readonly limits: FrontLimits;
  readonly handler: HandlerState;
}

/** The limits that a front enforces. */
export interface FrontLimits {
  /** Deadline of one request, milliseconds. */
  readonly timeoutMs: number;
  /** Concurrent requests of this front, in the handler or queued. */
  readonly concurrentRequests: number;
}

/** To a front. Each message is answered by `done` with its number. */
export type ToFront =
  | {
      readonly type: 'apply';
      readonly seq: number;
      readonly endpoints: readonly EndpointState[];
      readonly removed: readonly string[];
    }
  /** Open the port: all endpoints have been applied. */
  | { readonly type: 'listen'; readonly seq: number }
  /** Answered when no request of this front is in flight in a replaced instance. */
  | { readonly type: 'drain'; readonly seq: number; readonly endpointId: string; readonly instanceId: number }
  | { readonly type: 'metrics'; readonly seq: number }
  /** Finish what is in flight, take nothing new, and exit. */
  | { readonly type: 'stop'; readonly seq: number };

/** From a front. */
export type FromFront =
  /** Receives messages now. Earlier ones may stay unread until the next one arrives. */
  | { readonly type: 'ready' }
  | {
      readonly type: 'done';
      readonly seq: number;
      readonly metrics?: MetricSnapshot;
      readonly error?: string;
    }
  /** A request to this instance exceeded its deadline. */
  | { readonly type: 'deadline-exceeded'; readonly endpointId: string; readonly instanceId: number }
  /** The connection to this instance, which should serve, broke or could not be made. */
  | {
      readonly type: 'connection-lost';
      readonly endpointId: string;
      readonly instanceId: number;
      readonly reason: string;
    }
  /** Requests handled since the last such message. */
  | { readonly type: 'counted'; readonly requests: number };
