/** Opening a connection within a time limit, and trying out whether a backend can be reached. */
import { toError } from '../errors.js';
import type { ServiceConfig, ServiceType } from '../service-configs.js';
import type { Connection, Driver, DriverContext } from './driver.js';
import type { OpenedConnection } from './link.js';
import { ServiceError } from './service-error.js';

/** Whoever tests a connection gets an answer within 5 s, this and the way there and back included. */
export const CONNECT_TIMEOUT_MS = 4_500;

/**
 * Opens a connection and makes one round trip.
 * @throws ServiceError of kind deadline when the backend keeps silent, also after it has accepted the connection
 */
export async function openConnection<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: Omit<DriverContext, 'signal'>,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<OpenedConnection> {
  const limit = new AbortController();
  const opening = open(driver, config, { ...context, signal: limit.signal }, limit.signal);
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new ServiceError('deadline', `the backend did not answer within ${timeoutMs} ms`));
      limit.abort();
    }, timeoutMs);
  });
  // Its failure comes too late to interest anybody, and must not count as unhandled.
  opening.catch(() => undefined);
  try {
    return await Promise.race([opening, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

async function open<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: DriverContext,
  limit: AbortSignal,
): Promise<OpenedConnection> {
  const connection = await driver.connect(config, context);
  // Also when the round trip hangs: closing is what ends it.
  const close = () => void connection.close();
  if (limit.aborted) {
    close();
    throw new ServiceError('unavailable', 'the backend answered too late');
  }
  limit.addEventListener('abort', close, { once: true });
  try {
    const started = performance.now();
    const message = await connection.test();
    return { connection, message, latencyMs: Math.round(performance.now() - started) };
  } catch (thrown) {
    if (!limit.aborted) close();
    throw thrown;
  } finally {
    limit.removeEventListener('abort', close);
  }
}

/** The outcome of a connection test. */
export type ConnectionTest =
  | { readonly connected: true; readonly latency_ms: number; readonly message: string }
  | { readonly connected: false; readonly error: string };

/** Connects, makes a round trip, and closes again. */
export async function testConnection<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  context: Omit<DriverContext, 'signal' | 'onLost'>,
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
