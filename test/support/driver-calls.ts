/** Calls drivers directly, without an actor around them. */
import { expect } from 'chai';
import type { Driver } from '../../src/actors/driver.js';
import { ServiceError, type ServiceErrorKind } from '../../src/actors/service-error.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import type { TestBackend } from './backend.js';
import { type CallableConnection, openCallable, pendingCall } from './callable-connection.js';
import { startStallingProxy } from './stalling-proxy.js';

/** An answer with its payload as bytes. */
export interface Answer {
  readonly result: unknown;
  readonly payload: Buffer;
}

/** An open connection that takes calls as short as tests want to write them. */
export interface TestConnection extends CallableConnection {
  send(
    operation: string,
    args?: unknown,
    payload?: string | Uint8Array,
    signal?: AbortSignal,
  ): Promise<Answer>;
}

/** Connects as an actor does. */
export async function connectTo<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  signal?: AbortSignal,
): Promise<TestConnection> {
  const connection = await openCallable(driver, config, { ...(signal && { signal }) });
  return {
    ...connection,
    send: async (operation, args = {}, payload = '', callSignal = undefined) => {
      const answer = await connection.call(pendingCall(operation, args, payload, callSignal));
      return { result: answer.result, payload: Buffer.from(answer.payload ?? '') };
    },
  };
}

/**
 * Starts a server before the tests of a suite and connects to it; closes both after them.
 * @param use gets both before the first test
 */
export function useDriver<T extends ServiceType, B extends TestBackend<T>>(
  driver: Driver<T>,
  start: () => Promise<B>,
  use: (backend: B, connection: TestConnection) => void,
): void {
  let backend: B | undefined;
  let connection: TestConnection | undefined;
  before(async () => {
    backend = await start();
    connection = await connectTo(driver, backend.config);
    use(backend, connection);
  });
  after(async () => {
    await connection?.close();
    await backend?.remove();
  });
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
 * A server that stalls must not delay closing a connection to it, nor active calls.
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
    await connection.close();
    await failing;
  } finally {
    await proxy.close();
  }
}
