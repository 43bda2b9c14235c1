/** Opens connections with a timeout, and tests them. */
import pTimeout from 'p-timeout';
import { toError } from '../errors.js';
import type { ConnectionTest } from '../model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../model/service-configs.js';
import { type Connection, type Driver, type DriverContext, openOrClose } from './driver.js';
import { AbortSource } from './driver-call.js';
import type { OpenedConnection } from './reconnecting-connection.js';
import { ServiceError } from './service-error.js';

/** Less than the 5 s within which the API answers a connection test. */
export const CONNECT_TIMEOUT_MS = 4_500;

/** The context of a connection without its timeout. */
type OpenContext = Pick<DriverContext, 'log' | 'onLost' | 'answerBytes'>;

/**
 * Opens a connection and makes one round trip.
 * @throws ServiceError `deadline` when the backend does not answer in time, even if it has accepted the connection
 */
export async function openConnection<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: OpenContext,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<OpenedConnection> {
  const abortable = Object.assign(new AbortSource(), context);
  const opening = open(driver, config, abortable);
  // After the timeout, a rejection is ignored.
  opening.catch(() => undefined);
  try {
    return await pTimeout(opening, {
      milliseconds: timeoutMs,
      message: new ServiceError('deadline', `the backend did not answer within ${timeoutMs} ms`),
    });
  } catch (thrown) {
    abortable.abort();
    throw thrown;
  }
}

async function open<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: DriverContext,
): Promise<OpenedConnection> {
  const connection = await driver.connect(config, context);
  if (context.isAborted) {
    void connection.close();
    throw new ServiceError('unavailable', 'the backend answered too late');
  }
  let message = '';
  let latencyMs = 0;
  // Closing also aborts a pending round trip.
  await openOrClose(context, connection, async () => {
    const started = performance.now();
    message = await connection.test();
    latencyMs = Math.round(performance.now() - started);
  });
  return { connection, message, latencyMs };
}

/** Connects, makes one round trip, and closes the connection. */
export async function testConnection<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: Omit<OpenContext, 'onLost'>,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<ConnectionTest> {
  let connection: Connection | undefined;
  try {
    const lost: DriverContext['onLost'] = (error) =>
      context.log.debug({ err: error }, 'lost while being tested');
    const opened = await openConnection(driver, config, { ...context, onLost: lost }, timeoutMs);
    connection = opened.connection;
    return { connected: true, latency_ms: opened.latencyMs, message: `Connected to ${opened.message}` };
  } catch (thrown) {
    return { connected: false, error: toError(thrown).message };
  } finally {
    await connection?.close();
  }
}
