/**
 * What an actor host and the process of a service tell each other.
 *
 * `npm run contracts` has written this file from `rust/service/src`: change it there.
 */

/** Whether the backend can be reached. */
export type State =
  /** During the first attempt, at the start or after a connection was lost. */
  | { readonly kind: 'connecting' }
  | {
      readonly kind: 'connected';
      readonly message: string;
      readonly latencyMs: number;
    }
  | {
      readonly kind: 'unreachable';
      readonly reason: string;
    };

/** A message to the process. */
export interface ToService<C> {
  readonly number: number;
  readonly request: Request<C>;
}

/** What the process is asked to do; each is answered. */
export type Request<C> =
  | ({ readonly type: 'serve' } & Work<C, ServeRequest>)
  | ({ readonly type: 'test' } & Work<C, TestRequest>)
  /** Replaces the bindings. */
  | {
      readonly type: 'bind';
      readonly bindings: readonly Binding[];
    }
  /** Is it alive? */
  | { readonly type: 'ping' }
  /** Answered with `figures`. */
  | { readonly type: 'measure' }
  /**
   * New calls belong elsewhere. Answered with `figures` when those in progress have ended, or after the limit.
   * Without a limit, the process lives on until handlers have left it.
   */
  | {
      readonly type: 'drain';
      readonly limitMs?: number;
    };

/** Common to both kinds of work of such a process. */
export type Work<C, R> = {
  readonly config: C;
  /** The size of one answer of the backend. */
  readonly answerBytes: number;
  /** The limit of memory of this process, MiB. */
  readonly memoryMb: number;
  /** The folders in which files of sqlite services may be. */
  readonly sqliteFolders: readonly string[];
  /** Whether lines of the level `debug` are logged. */
  readonly logsDebug: boolean;
} & R;

/** A connection that is opened, tested and closed. Answered with `tested`. */
export interface TestRequest {
  readonly timeoutMs: number;
}

/** A message from the process. */
export type FromService =
  | {
      readonly type: 'answer';
      readonly number: number;
      readonly answer: Answer;
    }
  | {
      readonly type: 'state';
      readonly state: State;
    }
  | {
      readonly type: 'figures';
      readonly figures: Figures;
    }
  /** An error that nothing has caught; the process ends. */
  | {
      readonly type: 'failed';
      readonly reason: string;
    }
  | {
      readonly type: 'log';
      readonly level: Level;
      readonly details: Readonly<Record<string, unknown>>;
      readonly message: string;
    };

export interface Answer {
  readonly figures?: Figures;
  readonly tested?: TestResult;
}

/** The outcome of a test. */
export type TestResult =
  | {
      readonly connected: true;
      readonly latency_ms: number;
      readonly message: string;
    }
  | {
      readonly connected: false;
      readonly error: string;
    };

export type Level = 'debug' | 'info' | 'warn';

/** What has happened since the last report, and the use of the pool now. */
export interface Figures {
  readonly calls: readonly Series[];
  readonly reconnects: number;
  readonly use: PoolUse;
}

export interface PoolUse {
  readonly inUse: number;
  readonly waiting: number;
}

/** Calls with the same result: the operation, `ok` or the kind of the error, and how long each took. */
export type Series = readonly [string, string, readonly number[]];

/** An endpoint that can use the service, and the name it uses. */
export interface Binding {
  readonly endpoint_id: string;
  readonly pool_id: string;
}

/** A service, and how it is served. */
export interface ServeRequest {
  readonly bindings: readonly Binding[];
  /** Where handlers connect. */
  readonly handlerSocket: string;
  /** Signs the tokens of handlers; valid for this process only. */
  readonly key: string;
  /** The folder of the nonces of the handlers that run. */
  readonly tokenFolder: string;
  readonly queueLimit: number;
  readonly defaultCallMs: number;
  readonly longestCallMs: number;
  /** The memory for payloads of calls, and for answers that are not sent yet. */
  readonly memoryBytes: number;
  /** Concurrent requests of a handler. */
  readonly handlerThreads: number;
}
