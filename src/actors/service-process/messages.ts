/**
 * What an actor host and the process of a service tell each other. What programs in Rust know of it is in
 * `src/contracts/service-process.ts`; those in TypeScript, which serve the other types, know some more.
 */
import type * as contract from '../../contracts/service-process.js';
import type { ServiceConfig, ServiceType } from '../../model/service-configs.js';
import type { SqliteFolders } from '../../model/sqlite-folders.js';
import type { HostedBinding } from '../../store/service-activity.js';

/** Common to both kinds of work of such a process. */
export interface WorkRequest extends contract.Work<ServiceConfig, unknown> {
  readonly service: { readonly id: string; readonly type: ServiceType };
  /** Paths refer to the first. */
  readonly sqliteFolders: SqliteFolders;
}

/** A service, and how it is served. Answered when it takes calls. */
export interface ServeRequest extends WorkRequest, contract.ServeRequest {
  readonly type: 'serve';
  readonly bindings: readonly HostedBinding[];
  /** Where the actor host reaches object files, for which it authenticates itself with the key. */
  readonly objectSocket: string;
}

/** A connection that is opened, tested and closed. Answered with `tested`. */
export interface TestRequest extends WorkRequest, contract.TestRequest {
  readonly type: 'test';
}

/** What the process is asked to do; each is answered. */
export type ServiceRequest =
  | ServeRequest
  | TestRequest
  | { readonly type: 'bind'; readonly bindings: readonly HostedBinding[] }
  | Exclude<contract.Request<ServiceConfig>, { readonly type: 'serve' | 'test' | 'bind' }>;

/** A message to the process. */
export interface ToService extends contract.ToService<ServiceConfig> {
  readonly request: ServiceRequest;
}

export type ServiceAnswer = contract.Answer;

export type LogLevel = contract.Level | 'error';

type Log = Extract<contract.FromService, { readonly type: 'log' }>;

/** A message from the process. */
export type FromService =
  | Exclude<contract.FromService, Log>
  | (Omit<Log, 'level'> & { readonly level: LogLevel });
