/**
 * Entry of the process of one service, which an actor host starts (`src/actors/service-process`): serves its handlers,
 * or tests a connection. All it knows is in the first message.
 */
import type { Driver } from '../actors/driver.js';
import { loadDriver } from '../actors/drivers/index.js';
import { guardConnections } from '../actors/guard/guarded-sockets.js';
import { testConnection } from '../actors/open-connection.js';
import type {
  FromService,
  LogLevel,
  ServeRequest,
  TestRequest,
  ToService,
} from '../actors/service-process/messages.js';
import { type ServedService, serveService } from '../actors/service-process/served-service.js';
import { toError } from '../errors.js';
import type { Log } from '../util/log.js';
import { watchParentIfAsked } from '../util/parent-watchdog.js';

/** How long a process whose last message cannot be sent waits before it ends. */
const LAST_WORDS_MS = 100;

let served: ServedService | undefined;

function send(message: FromService, done?: () => void): void {
  // Not connected when the actor host has ended or needs it no longer.
  if (process.connected) process.send?.(message, undefined, undefined, () => done?.());
}

/** A log that the actor host writes, with its other lines of this service. */
function relayedLog(): Log {
  const at = (level: LogLevel) => (details: object, message: string) =>
    send({ type: 'log', level, details: withErrorText(details), message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** An error has no members that a message would carry. */
function withErrorText(details: object): Record<string, unknown> {
  const entries = Object.entries(details).map(([name, value]) =>
    value instanceof Error
      ? [name, { type: value.name, message: value.message, stack: value.stack }]
      : [name, value],
  );
  return Object.fromEntries(entries);
}

function guardedDriver({ service, answerBytes }: ServeRequest | TestRequest): Promise<Driver> {
  guardConnections(service.type, answerBytes);
  return loadDriver(service.type);
}

async function serve(request: ServeRequest): Promise<void> {
  const driver = await guardedDriver(request);
  served = await serveService(request, driver, relayedLog(), {
    onState: (state) => send({ type: 'state', state }),
    onFiguresDue: () => sendFigures(),
  });
  send({ type: 'serving' });
}

async function test(request: TestRequest): Promise<void> {
  const { config, timeoutMs } = request;
  const driver = await guardedDriver(request);
  const context = { log: relayedLog(), sqliteDir: undefined };
  send({ type: 'tested', result: await testConnection(driver, config, context, timeoutMs) });
}

function sendFigures(number?: number): void {
  if (served)
    send({ type: 'figures', figures: served.takeFigures(), ...(number !== undefined && { number }) });
}

async function drain(limitMs: number | undefined): Promise<void> {
  if (!served) return process.exit(0);
  await served.drain(limitMs);
  send({ type: 'drained', figures: served.takeFigures() });
  await served.left();
  process.exit(0);
}

async function obey(message: ToService): Promise<void> {
  switch (message.type) {
    case 'serve':
      return serve(message);
    case 'test':
      return test(message);
    case 'bind':
      served?.bind(message.bindings);
      return send({ type: 'bound', number: message.number });
    case 'ping':
      return send({ type: 'pong' });
    case 'measure':
      return sendFigures(message.number);
    case 'drain':
      return drain(message.limitMs);
  }
}

/** What nothing has caught is the error of this service: it ends this process, and no other. */
function fail(thrown: unknown): void {
  setTimeout(() => process.exit(1), LAST_WORDS_MS);
  send({ type: 'failed', reason: toError(thrown).message }, () => process.exit(1));
}

watchParentIfAsked();
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
process.on('message', (message: ToService) => {
  obey(message).catch(fail);
});
// Ignored: the actor host ends this process, also when a signal is sent to the whole process group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => process.exit(0));
send({ type: 'started' });
