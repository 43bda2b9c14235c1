/**
 * What the supervisor (the primary process of a gateway) and its fronts tell each other over IPC.
 *
 * The supervisor sends whole states of endpoints, never steps: applying one twice is harmless, and a new front
 * simply gets all of them.
 */
import type { MetricSnapshot } from '../metrics/process-metrics.js';
import type { Route } from './route-table.js';

/** One handler process, as fronts know it. */
export interface InstanceRef {
  /** Unique on this machine for the life of the gateway. */
  readonly id: number;
  /** Unix socket it listens on, as fronts call it; it may lie in the handler's sandbox. */
  readonly socket: string;
}

/** What serves an endpoint. */
export type HandlerState =
  /** Nothing should run: requests get 503. */
  | { readonly kind: 'none' }
  /** It should run and soon will: requests are held for a moment. */
  | { readonly kind: 'starting' }
  | { readonly kind: 'running'; readonly instance: InstanceRef };

/** All a front has to know of an endpoint. */
export interface EndpointState extends Route {
  readonly id: string;
  /** False: defined, but disabled. */
  readonly routed: boolean;
  readonly limits: FrontLimits;
  readonly handler: HandlerState;
}

/** The limits that a front sees to. */
export interface FrontLimits {
  /** Deadline of one request, milliseconds. */
  readonly timeoutMs: number;
  /** Requests of this front that are in the handler, or wait for it, at the same time. */
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
  /** Answered when no request of this front is in flight in an instance that was taken from its endpoint. */
  | { readonly type: 'drain'; readonly seq: number; readonly endpointId: string; readonly instanceId: number }
  | { readonly type: 'metrics'; readonly seq: number }
  /** Finish what is in flight, take nothing new, and exit. */
  | { readonly type: 'stop'; readonly seq: number };

/** From a front. */
export type FromFront =
  /** Ready for orders. What is sent earlier may stay unread until the next message comes. */
  | { readonly type: 'hello' }
  | {
      readonly type: 'done';
      readonly seq: number;
      readonly metrics?: MetricSnapshot;
      readonly error?: string;
    }
  /** A request in this instance ran over its deadline. */
  | { readonly type: 'stuck'; readonly endpointId: string; readonly instanceId: number }
  /** The connection with this instance, which should serve, is lost, or could not be made. */
  | {
      readonly type: 'lost';
      readonly endpointId: string;
      readonly instanceId: number;
      readonly reason: string;
    }
  /** Requests handled since the last such message. */
  | { readonly type: 'counted'; readonly requests: number };
