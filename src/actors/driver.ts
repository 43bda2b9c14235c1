/**
 * What a driver is: it knows one kind of backend, and nothing of handlers, bindings, queues or deadlines, which are the
 * business of the actor (`actor.ts`). One file per driver in `drivers/`; `test/actors/driver-suite.ts` is what all pass.
 */
import type { Readable } from 'node:stream';
import type { Logger } from '../log.js';
import type { ServiceConfig, ServiceType } from '../service-configs.js';

/** A call as a driver gets it. */
export interface DriverCall {
  readonly operation: string;
  /** From a handler, so the driver checks them. */
  readonly args: unknown;
  /** Exact bytes or JSON text, as the operation wants it. */
  readonly payload: Buffer;
  /** Aborted when nobody waits for the answer any more: the driver frees what the call holds. Costly: made when asked for. */
  readonly signal: AbortSignal;
  /** Milliseconds from now until it is aborted. */
  readonly remainingMs: number;
  /** The cheap form: calls back when the call is aborted, or now if it has been. A listener replaces the one before. */
  onAbort(listener: (() => void) | undefined): void;
}

/** The answer to a call. */
export interface DriverAnswer {
  /** Small and JSON; see `exact-json.ts` for what a value may hold. */
  readonly result?: unknown;
  /** Bytes, or JSON text. */
  readonly payload?: Uint8Array | string;
}

/** An open transaction: it has a connection of its own until it is committed or rolled back, once. */
export interface Transaction {
  /** @throws ServiceError */
  call(call: DriverCall): Promise<DriverAnswer>;
  /** @throws ServiceError when it was not committed, or nobody knows whether it was */
  commit(call: DriverCall): Promise<void>;
  /** Never fails: a connection that cannot be rolled back is closed, which has the same effect. */
  rollback(): Promise<void>;
}

/** A stored object, without its content. */
export interface ObjectInfo {
  readonly key: string;
  readonly size: number;
  readonly last_modified: Date;
  readonly etag: string;
}

/** Streaming access to the files of an object storage, for the management API. */
export interface ObjectFiles {
  readonly bucket: string;
  /** All objects with this prefix. */
  list(prefix: string): Promise<ObjectInfo[]>;
  /** @returns undefined when there is none */
  head(key: string): Promise<ObjectInfo | undefined>;
  /**
   * Bytes from `start` to `end`, both included; all of them without a range. Piping the stream into an HTTP message is fast.
   * @param etag that of `head`: fails when the object is another one by now
   */
  read(
    key: string,
    range?: { readonly start: number; readonly end: number },
    etag?: string,
  ): Promise<Readable>;
  /** Stores exactly `size` bytes; a stream that ends early or fails stores nothing. */
  write(key: string, content: Readable, size: number, contentType: string): Promise<{ etag: string }>;
  /** @returns whether there was such an object */
  delete(key: string): Promise<boolean>;
}

/**
 * Open connections to one backend. Every method but `close` rejects with a ServiceError; of kind `unavailable` when
 * the connection is of no more use: the actor then closes it and makes a new one.
 */
export interface Connection {
  /** One round trip that proves that the backend works. @returns what answered, e.g. `PostgreSQL 18.1` */
  test(): Promise<string>;
  call(call: DriverCall): Promise<DriverAnswer>;
  /** Only backends with transactions have it. */
  begin?(call: DriverCall): Promise<Transaction>;
  /** Only object storages have it. */
  readonly files?: ObjectFiles;
  /** Closes everything, at once; never fails. No call is under way, but some may be stuck. */
  close(): Promise<void>;
}

/** What surrounds a connection. */
export interface DriverContext {
  /** Aborted when opening has taken too long: the driver gives up and closes what it has opened so far. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Tells that the connection broke while nobody was calling. */
  readonly onLost: (error: Error) => void;
  /** Folder that sqlite files must be in; undefined when they may be anywhere. */
  readonly sqliteDir: string | undefined;
}

/** A kind of backend. */
export interface Driver<T extends ServiceType = ServiceType> {
  readonly type: T;
  /** The operations handlers may call, as in `docs/SERVICE-PROTOCOL.md`. */
  readonly operations: readonly string[];
  /** How many calls may be under way at once. */
  concurrency(config: ServiceConfig<T>): number;
  /**
   * Connects, and makes sure that the backend answers and takes the credentials.
   * @throws ServiceError `unavailable` with what a person can act on: see `connect-errors.ts`
   */
  connect(config: ServiceConfig<T>, context: DriverContext): Promise<Connection>;
}
