/** Connections that are called as an actor calls them, without an actor. */
import { type Connection, type Driver, requireOperation, type Transaction } from '../../src/actors/driver.js';
import { AbortSource, PendingCall } from '../../src/actors/driver-call.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import { ANSWER_BYTES } from './actors.js';
import { createTestLog } from './log.js';

/** A call and its arguments. */
export class TestDriverCall extends PendingCall {
  constructor(
    readonly operation: string,
    readonly args: unknown,
    payload: string | Uint8Array,
    readonly mayBeAborted: boolean,
  ) {
    super(Buffer.from(payload), 60_000);
  }
}

/** @param signal aborts the call */
export function pendingCall(
  operation: string,
  args?: unknown,
  payload: string | Uint8Array = '',
  signal?: AbortSignal,
): TestDriverCall {
  const call = new TestDriverCall(operation, args, payload, signal !== undefined);
  abortWith(call, signal);
  return call;
}

export interface CallableTransaction extends Transaction {
  call(call: TestDriverCall): Promise<DriverAnswer>;
}

export interface CallableConnection extends Connection {
  call(call: TestDriverCall): Promise<DriverAnswer>;
  begin(call: TestDriverCall): Promise<CallableTransaction>;
  /** All errors that the driver reported by `onLost`. */
  readonly lost: readonly Error[];
}

/** Connects as an actor does. */
export async function openCallable<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  options: { readonly answerBytes?: number; readonly signal?: AbortSignal } = {},
): Promise<CallableConnection> {
  const lost: Error[] = [];
  const context = Object.assign(new AbortSource(), {
    log: createTestLog().log,
    onLost: (error: Error) => lost.push(error),
    answerBytes: options.answerBytes ?? ANSWER_BYTES,
  });
  abortWith(context, options.signal);
  const connection = await driver.connect(config, context);
  const callOn =
    (target: Connection | Transaction) =>
    async (call: TestDriverCall): Promise<DriverAnswer> => {
      const { check, run } = requireOperation(driver, call.operation);
      return run(target, check(call.args), call);
    };
  const { files } = connection;
  return {
    lost,
    ...(files && { files }),
    test: () => connection.test(),
    close: () => connection.close(),
    call: callOn(connection),
    begin: async (call) => {
      if (!connection.begin) throw new Error('It has no transactions');
      const transaction = await connection.begin(call);
      return {
        call: callOn(transaction),
        commit: (commit) => transaction.commit(commit),
        rollback: () => transaction.rollback(),
      };
    },
  };
}

function abortWith(source: AbortSource, signal: AbortSignal | undefined): void {
  if (signal?.aborted) source.abort();
  signal?.addEventListener('abort', () => source.abort(), { once: true });
}
