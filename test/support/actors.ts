/** Actors and connections for tests, outside of an actor host. */

import { Registry } from 'prom-client';
import { Actor } from '../../src/actors/actor.js';
import type { Driver } from '../../src/actors/driver.js';
import type { ActorCall } from '../../src/actors/driver-call.js';
import { testConnection } from '../../src/actors/open-connection.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import { ServiceError, type ServiceErrorKind } from '../../src/actors/service-error.js';
import { ServiceMetrics } from '../../src/actors/service-metrics.js';
import type { ConnectionTest } from '../../src/model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import { createTestLog } from './log.js';

/** What one answer of a backend may have. */
export const ANSWER_BYTES = 64 * 1024 ** 2;

/** A call in the short form of tests. */
export interface TestCall {
  readonly operation: string;
  readonly args?: unknown;
  readonly payload?: Buffer | string;
  readonly timeoutMs?: number;
}

/** Makes the complete call. */
export function call({ operation, args, payload = '', timeoutMs = 10_000 }: TestCall): ActorCall {
  return { operation, args, payload: Buffer.from(payload), timeoutMs };
}

/** Starts an actor. */
export function startActor<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  options: {
    readonly queueLimit?: number;
    readonly connectTimeoutMs?: number | undefined;
  } = {},
): Actor<T> {
  const metrics = new ServiceMetrics(new Registry(), () => []).of('a service', driver.type);
  return new Actor<T>({
    driver,
    config,
    queueLimit: options.queueLimit ?? 1_000,
    answerBytes: ANSWER_BYTES,
    connectTimeoutMs: options.connectTimeoutMs,
    metrics,
    log: createTestLog().log,
    onState: () => undefined,
  });
}

/** Tests a config, as the API does. */
export function tryConnection<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  timeoutMs?: number,
): Promise<ConnectionTest> {
  return testConnection(driver, config, { log: createTestLog().log, answerBytes: ANSWER_BYTES }, timeoutMs);
}

/** The error of a call that has to fail. */
export async function failureOf(answer: Promise<DriverAnswer>): Promise<ServiceError> {
  try {
    await answer;
  } catch (thrown) {
    if (thrown instanceof ServiceError) return thrown;
    throw thrown;
  }
  throw new Error('The call succeeded');
}

/** Asserts that a call fails with this kind of error; returns its message. */
export async function failsWith(kind: ServiceErrorKind, answer: Promise<DriverAnswer>): Promise<string> {
  const failure = await failureOf(answer);
  if (failure.kind !== kind) throw new Error(`Failed with ${failure.kind}, not ${kind}: ${failure.message}`);
  return failure.message;
}
