/**
 * The interface of drivers. A driver implements one kind of backend; handlers, bindings, queues and deadlines are the
 * concern of the actor (`actor.ts`). One folder per driver in `drivers/`; all pass `test/actors/driver-suite.ts`.
 */
import type { Readable } from 'node:stream';
import type { ServiceConfig, ServiceType } from '../model/service-configs.js';
import type { Log } from '../util/log.js';
import type { Abortable, DriverCall } from './driver-call.js';
import { type CheckedOperation, checkedOperation, type ServiceOperation } from './operations.js';
import type { TObject } from './schema.js';
import { ServiceError } from './service-error.js';

/** An open transaction: it has a connection of its own until it is committed or rolled back, once. */
export interface Transaction {
  /** @throws ServiceError when it was not committed, or the outcome is unknown */
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
   * Bytes from `start` to `end`, inclusive; all of them without a range.
   * @param etag that of `head`: fails when the object has been replaced since
   */
  read(
    key: string,
    range?: { readonly start: number; readonly end: number },
    etag?: string,
  ): Promise<Readable>;
  /** Stores exactly `size` bytes; a stream that ends early or fails stores nothing. */
  write(key: string, content: Readable, size: number, contentType: string): Promise<{ etag: string }>;
  /** @returns whether the object existed */
  delete(key: string): Promise<boolean>;
}

/**
 * Open connections to one backend. Every method but `close` rejects with a ServiceError; of kind `unavailable` when
 * the connection is broken: the actor then closes it and makes a new one.
 */
export interface Connection {
  /** Makes one round trip to the backend. @returns its product and version, e.g. `PostgreSQL 18.1` */
  test(): Promise<string>;
  /** Only for backends with transactions. Their operations also run on a transaction. */
  begin?(call: DriverCall): Promise<Transaction>;
  /** Only for object storages. */
  readonly files?: ObjectFiles;
  /** Closes everything at once; never fails. Calls past their deadline may still be running. */
  close(): Promise<void>;
}

/** The context of a connection. It is aborted when opening takes too long. */
export interface DriverContext extends Abortable {
  readonly log: Log;
  /** To be called when the connection is lost while no call is in progress. */
  readonly onLost: (error: Error) => void;
  /** What one answer of the backend may have, where no guard between socket and library counts it. */
  readonly answerBytes: number;
}

/** Common to all drivers. */
interface DriverBase<T extends ServiceType, C extends Connection> {
  readonly type: T;
  /** Maximum number of concurrent calls. */
  concurrency(config: ServiceConfig<T>): number;
  /**
   * Connects, and checks that the backend answers and accepts the credentials.
   * @throws ServiceError `unavailable` with a reason that operators can act on: see `failures.ts`
   */
  connect(config: ServiceConfig<T>, context: DriverContext): Promise<C>;
}

/** A kind of backend. */
export interface Driver<T extends ServiceType = ServiceType, C extends Connection = Connection>
  extends DriverBase<T, C> {
  /** The operations handlers may call, as in `docs/SERVICE-PROTOCOL.md`. */
  readonly operations: ReadonlyMap<string, CheckedOperation<Connection | Transaction>>;
}

/** Defines a driver and compiles the schemas of its operations. */
export function defineDriver<
  T extends ServiceType,
  C extends Connection,
  Args extends Readonly<Record<string, TObject>>,
>(
  driver: DriverBase<T, C> & {
    readonly operations: { readonly [K in keyof Args]: ServiceOperation<NoInfer<C>, Args[K]> };
  },
): Driver<T, C> {
  const operations = Object.entries(driver.operations as Readonly<Record<string, ServiceOperation<C>>>);
  return {
    ...driver,
    // The actor runs operations on connections of the same driver, and on their transactions.
    operations: new Map(
      operations.map(([name, operation]) => [
        name,
        checkedOperation(operation) as CheckedOperation<Connection | Transaction>,
      ]),
    ),
  };
}

/**
 * Finds an operation.
 * @throws ServiceError `invalid` with the names of the operations
 */
export function requireOperation(
  { type, operations }: Driver,
  name: string,
): CheckedOperation<Connection | Transaction> {
  const operation = operations.get(name);
  if (operation) return operation;
  const known = `a ${type} service has ${[...operations.keys()].join(', ')}`;
  throw new ServiceError('invalid', `there is no operation "${name.slice(0, 64)}": ${known}`);
}

/** Finishes opening a connection; closes it when that fails or is aborted. */
export async function openOrClose<C extends { close(): unknown }>(
  context: Abortable,
  connection: C,
  open: () => Promise<unknown>,
): Promise<C> {
  context.onAbort(() => void connection.close());
  try {
    await open();
    return connection;
  } catch (thrown) {
    await connection.close();
    throw thrown;
  } finally {
    context.onAbort(undefined);
  }
}
