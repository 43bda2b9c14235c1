/** Calls drivers directly, without an actor around them. */
import { expect } from 'chai';
import type { Connection, Driver, DriverCall } from '../../src/actors/driver.js';
import { ServiceError, type ServiceErrorKind } from '../../src/actors/service-error.js';
import type { ServiceConfig, ServiceType } from '../../src/service-configs.js';
import { createTestLog } from './log.js';
import { pendingCall } from './pending-call.js';
import { startStallingProxy } from './stalling-proxy.js';

/** An answer with its payload as bytes. */
export interface Answer {
  readonly result: unknown;
  readonly payload: Buffer;
}

/** An open connection that takes calls as short as tests want to write them. */
export interface TestConnection extends Connection {
  send(
    operation: string,
    args?: unknown,
    payload?: string | Uint8Array,
    signal?: AbortSignal,
  ): Promise<Answer>;
  /** Everything the driver told by `onLost`. */
  readonly lost: readonly Error[];
}

/** Connects as an actor does. */
export async function connectTo<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<TestConnection> {
  const lost: Error[] = [];
  const connection = await driver.connect(config, {
    signal,
    log: createTestLog().log,
    onLost: (error) => lost.push(error),
    sqliteDir: undefined,
  });
  return {
    lost,
    test: () => connection.test(),
    call: (call: DriverCall) => connection.call(call),
    close: () => connection.close(),
    send: async (operation, args = {}, payload = '', callSignal = undefined) => {
      const answer = await connection.call(pendingCall(operation, args, payload, callSignal));
      return { result: answer.result, payload: Buffer.from(answer.payload ?? '') };
    },
  };
}

/** Expects a call, or a connect, to fail. @returns its message */
export async function expectServiceError(
  failing: Promise<unknown>,
  kind: ServiceErrorKind,
  message: RegExp,
): Promise<string> {
  const outcome = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(outcome, 'it was expected to fail').to.be.instanceOf(ServiceError);
  const error = outcome as ServiceError;
  expect(error.message).to.match(message);
  expect(error.kind).to.equal(kind);
  return error.message;
}

/** All values a byte can have. */
export const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_value, i) => i));

/**
 * A server that falls silent must not hold up those who close a connection to it, nor the calls under way.
 * @param at the config of the same service at another port of this machine
 */
export async function expectToCloseAtOnce<T extends ServiceType>(
  driver: Driver<T>,
  port: number,
  at: (port: number) => ServiceConfig<T>,
  call: readonly [operation: string, args: unknown, payload: string],
): Promise<void> {
  const proxy = await startStallingProxy(port);
  try {
    const connection = await connectTo(driver, at(proxy.port));
    await connection.send(...call);
    proxy.stall();
    const failing = expectServiceError(connection.send(...call), 'unavailable', /./);
    const started = performance.now();
    await connection.close();
    await failing;
    expect(performance.now() - started).to.be.below(2_000);
  } finally {
    await proxy.close();
  }
}
