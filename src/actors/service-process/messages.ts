/** What an actor host and the process of a service tell each other. */
import type { ConnectionTest } from '../../model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../../model/service-configs.js';
import type { HostedBinding } from '../../store/service-activity.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import type { Figures } from './figures.js';

/** A service, and how it is served. */
export interface ServeRequest {
  readonly type: 'serve';
  readonly service: { readonly id: string; readonly type: ServiceType };
  readonly config: ServiceConfig;
  /** The size of one answer of the backend. */
  readonly answerBytes: number;
  readonly bindings: readonly HostedBinding[];
  /** Where handlers connect. */
  readonly handlerSocket: string;
  /** Where the actor host reaches object files. */
  readonly objectSocket: string;
  /** Signs the tokens of handlers, and authenticates the actor host; valid for this process only. */
  readonly key: string;
  readonly queueLimit: number;
  readonly defaultCallMs: number;
  readonly longestCallMs: number;
  readonly memoryBytes: number;
  /** Concurrent requests of a handler. */
  readonly handlerThreads: number;
}

/** A connection that is opened, tested and closed. */
export interface TestRequest {
  readonly type: 'test';
  readonly service: ServeRequest['service'];
  readonly config: ServiceConfig;
  readonly answerBytes: number;
  readonly timeoutMs: number;
}

/** To the process. */
export type ToService =
  | ServeRequest
  | TestRequest
  /** Replaces the bindings; answered with `bound` and this number. */
  | { readonly type: 'bind'; readonly number: number; readonly bindings: readonly HostedBinding[] }
  /** Is it alive? Answered with `pong`. */
  | { readonly type: 'ping' }
  /** Answered with `figures` and this number. */
  | { readonly type: 'measure'; readonly number: number }
  /** New calls belong elsewhere; `drained` when those in progress have ended, or after the limit. */
  | { readonly type: 'drain'; readonly limitMs: number | undefined };

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** From the process. */
export type FromService =
  /** It has been started and waits for a request. */
  | { readonly type: 'started' }
  | { readonly type: 'serving' }
  | { readonly type: 'tested'; readonly result: ConnectionTest }
  | { readonly type: 'state'; readonly state: ConnectionState }
  | { readonly type: 'bound'; readonly number: number }
  | { readonly type: 'pong' }
  | { readonly type: 'figures'; readonly number?: number; readonly figures: Figures }
  | { readonly type: 'drained'; readonly figures: Figures }
  /** An error that nothing has caught; the process ends. */
  | { readonly type: 'failed'; readonly reason: string }
  | {
      readonly type: 'log';
      readonly level: LogLevel;
      readonly details: Readonly<Record<string, unknown>>;
      readonly message: string;
    };
