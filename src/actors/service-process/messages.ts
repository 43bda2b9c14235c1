/** What an actor host and the process of a service tell each other. */
import type { ConnectionTest } from '../../model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../../model/service-configs.js';
import type { SqliteFolders } from '../../model/sqlite-folders.js';
import type { HostedBinding } from '../../store/service-activity.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import type { Figures } from './figures.js';

/** Common to both kinds of work of such a process. */
export interface WorkRequest {
  readonly service: { readonly id: string; readonly type: ServiceType };
  readonly config: ServiceConfig;
  /** The size of one answer of the backend. */
  readonly answerBytes: number;
  /** The limit of memory of the process, MiB. */
  readonly memoryMb: number;
  /** The folders in which files of sqlite services may be; paths refer to the first. */
  readonly sqliteFolders: SqliteFolders;
  /** Whether lines of the level `debug` are logged. */
  readonly logsDebug: boolean;
}

/** A service, and how it is served. Answered when it takes calls. */
export interface ServeRequest extends WorkRequest {
  readonly type: 'serve';
  readonly bindings: readonly HostedBinding[];
  /** Where handlers connect. */
  readonly handlerSocket: string;
  /** Where the actor host reaches object files. */
  readonly objectSocket: string;
  /** The folder of the nonces of the handlers that run. */
  readonly tokenFolder: string;
  /** Signs the tokens of handlers, and authenticates the actor host; valid for this process only. */
  readonly key: string;
  readonly queueLimit: number;
  readonly defaultCallMs: number;
  readonly longestCallMs: number;
  /** For payloads of calls, and answers that are not sent yet. */
  readonly memoryBytes: number;
  /** Concurrent requests of a handler. */
  readonly handlerThreads: number;
}

/** A connection that is opened, tested and closed. Answered with `tested`. */
export interface TestRequest extends WorkRequest {
  readonly type: 'test';
  readonly timeoutMs: number;
}

/** What the process is asked to do; each is answered. */
export type ServiceRequest =
  | ServeRequest
  | TestRequest
  /** Replaces the bindings. */
  | { readonly type: 'bind'; readonly bindings: readonly HostedBinding[] }
  /** Is it alive? */
  | { readonly type: 'ping' }
  /** Answered with `figures`. */
  | { readonly type: 'measure' }
  /**
   * New calls belong elsewhere. Answered with `figures` when those in progress have ended, or after the limit. Without
   * a limit, the process lives on until handlers have left it.
   */
  | { readonly type: 'drain'; readonly limitMs: number | undefined };

/** To the process. */
export interface ToService {
  readonly number: number;
  readonly request: ServiceRequest;
}

export interface ServiceAnswer {
  readonly figures?: Figures | undefined;
  readonly tested?: ConnectionTest | undefined;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** From the process. */
export type FromService =
  | { readonly type: 'answer'; readonly number: number; readonly answer: ServiceAnswer }
  | { readonly type: 'state'; readonly state: ConnectionState }
  | { readonly type: 'figures'; readonly figures: Figures }
  /** An error that nothing has caught; the process ends. */
  | { readonly type: 'failed'; readonly reason: string }
  | {
      readonly type: 'log';
      readonly level: LogLevel;
      readonly details: Readonly<Record<string, unknown>>;
      readonly message: string;
    };
