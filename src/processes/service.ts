/**
 * Entry of the process of one service, which an actor host starts (`src/actors/service-process`): serves its handlers,
 * or tests a connection. All it knows is in the first request.
 */
import type { Driver } from '../actors/driver.js';
import { loadDriver } from '../actors/drivers/index.js';
import { guardConnections } from '../actors/guard/guarded-sockets.js';
import { testConnection } from '../actors/open-connection.js';
import type {
  FromService,
  LogLevel,
  ServeRequest,
  ServiceAnswer,
  ServiceRequest,
  TestRequest,
  ToService,
} from '../actors/service-process/messages.js';
import { type ServedService, serveService } from '../actors/service-process/served-service.js';
import { toError } from '../errors.js';
import { withErrorText } from '../util/error-text.js';
import type { Log } from '../util/log.js';

/** How long a process whose last message cannot be sent waits before it ends. */
const LAST_WORDS_MS = 100;
/** Texts of backends may be as long as an answer. */
const MAX_TEXT = 4_096;

let served: Promise<ServedService> | undefined;

process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
process.on('message', ({ number, request }: ToService) => {
  perform(request)
    .then((answer) => {
      send({ type: 'answer', number, answer });
      if (request.type === 'drain') return leave();
      return undefined;
    })
    .catch(fail);
});
// Ignored: the actor host ends this process, also when a signal is sent to the whole process group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('disconnect', () => process.exit(0));

async function perform(request: ServiceRequest): Promise<ServiceAnswer> {
  switch (request.type) {
    case 'serve':
      served = serve(request);
      await served;
      return {};
    case 'test':
      return { tested: await test(request) };
    case 'bind':
      (await served)?.bind(request.bindings);
      return {};
    case 'ping':
      return {};
    case 'measure':
      return figuresOf(await served);
    case 'drain':
      await (await served)?.drain(request.limitMs);
      return figuresOf(await served);
  }
}

function figuresOf(service: ServedService | undefined): ServiceAnswer {
  return service ? { figures: service.takeFigures() } : {};
}

async function serve(request: ServeRequest): Promise<ServedService> {
  const driver = await guardedDriver(request);
  return serveService(request, driver, relayedLog(request), {
    onState: (state) => send({ type: 'state', state: shortened(state) }),
    onFiguresDue: (figures) => send({ type: 'figures', figures }),
  });
}

async function test(request: TestRequest) {
  const { config, timeoutMs, answerBytes } = request;
  const context = { log: relayedLog(request), answerBytes };
  return shortened(await testConnection(await guardedDriver(request), config, context, timeoutMs));
}

/** Ends when all handlers have left. */
async function leave(): Promise<void> {
  await (await served)?.left();
  process.exit(0);
}

function guardedDriver({ service, answerBytes }: ServeRequest | TestRequest): Promise<Driver> {
  guardConnections(service.type, answerBytes);
  return loadDriver(service.type);
}

/** A log that the actor host writes, with its other lines of this service. */
function relayedLog({ logsDebug }: ServeRequest | TestRequest): Log {
  const at = (level: LogLevel) => (details: object, message: string) =>
    send({ type: 'log', level, details: shortened(withErrorText(details)), message });
  return {
    debug: logsDebug ? at('debug') : () => undefined,
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

/** What nothing has caught is the error of this service: it ends this process, and no other. */
function fail(thrown: unknown): void {
  setTimeout(() => process.exit(1), LAST_WORDS_MS);
  send({ type: 'failed', reason: shortened(toError(thrown).message) }, () => process.exit(1));
}

function send(message: FromService, done?: () => void): void {
  // Not connected when the actor host has ended.
  if (process.connected) process.send?.(message, undefined, undefined, () => done?.());
}

/** A copy without long texts. */
function shortened<T>(value: T): T {
  const shorten = (_name: string, member: unknown) =>
    typeof member === 'string' && member.length > MAX_TEXT ? `${member.slice(0, MAX_TEXT)} ...` : member;
  return JSON.parse(JSON.stringify(value, shorten));
}
