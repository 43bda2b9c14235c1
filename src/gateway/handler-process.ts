/** One handler process: started in its sandbox, watched until it is ready, listened to, ended. */
import type { Duplex } from 'node:stream';
import type { LimitsInForce } from '../endpoint-limits.js';
import { toError } from '../errors.js';
import { type LimitedProcess, type ProgramEnd, spawnLimited } from '../limited-process.js';
import type { Logger } from '../log.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { captureOutput } from './handler-output.js';
import { type HandlerSocket, makeHandlerSocket } from './handler-socket.js';
import { type HandlerNetwork, viewOf } from './handler-view.js';
import type { HandlerWatch } from './handler-watch.js';
import type { InstanceRef } from './messages.js';

/** What holds for all handlers of a gateway. */
export interface HandlerSettings {
  readonly sandbox: Sandbox;
  readonly network: HandlerNetwork;
  readonly watch: HandlerWatch;
  /** Requests one works on at the same time. */
  readonly threads: number;
  /** Milliseconds until one has to be ready. */
  readonly startTimeoutMs: number;
}

/** How a handler reaches backend services. */
export interface ServiceAccess {
  /** The actor host's socket. */
  readonly socket: string;
  /** Proves which endpoint is calling. */
  readonly token: string;
  /** Deadline of a call for which the handler names none, milliseconds. */
  readonly timeoutMs: number;
}

/** How to start one. */
export interface HandlerOptions {
  /** The executable, on this machine. */
  readonly executable: string;
  readonly instanceId: number;
  /** Where sockets of handlers without a sandbox are. */
  readonly runDir: string;
  readonly endpointId: string;
  readonly services: ServiceAccess;
  readonly limits: LimitsInForce;
  readonly settings: HandlerSettings;
  /** For what it prints; its lines name the endpoint. */
  readonly log: Logger;
}

/** The handler did not become ready. The message has the last lines it printed. */
export class HandlerStartError extends Error {
  override readonly name = 'HandlerStartError';
}

/** A handler process that has been ready. */
export interface HandlerProcess {
  readonly pid: number;
  readonly instance: InstanceRef;
  readonly startedAt: number;
  /** Resolves, with the reason, when it has ended, for whatever cause. */
  readonly ended: Promise<string>;
  /** What it printed last. */
  lastLines(): string;
  /** Kills it, as crashed for this reason. */
  fail(reason: string): void;
  /** Ends it, asked first and killed if it does not go, and all it has started. */
  stop(): Promise<void>;
}

/** A handler that was asked to end is killed after this. */
const STOP_GRACE_MS = 1_000;
const CONTROL_FD = 3;
/** Largest file it may write, MiB. */
const FILE_MB = 64;
/** Address space that threads and the allocator reserve without using it, MiB. */
const RESERVED_MB = 256;
/** Threads of the SDK beside those that run handlers. */
const OTHER_THREADS = 6;

/**
 * Starts a handler and waits until it listens.
 * @throws HandlerStartError when it ends, or is not ready in time
 */
export async function startHandler(options: HandlerOptions): Promise<HandlerProcess> {
  const { instanceId, runDir, limits, settings } = options;
  const { level } = settings.sandbox;
  const socket = await makeHandlerSocket(level, runDir, instanceId, options.log);
  let child: LimitedProcess;
  try {
    child = spawnHandler(options, socket);
  } catch (error) {
    await socket.remove();
    throw error;
  }
  const pid = await child.pid;
  const output = captureOutput(child.stdout, child.stderr, options.log.child({ handler_pid: pid }));

  let failure: string | undefined;
  const ended = child.ended.then(
    (end) => failure ?? describeEnd(end),
    (error: unknown) => `it could not be run: ${toError(error).message}`,
  );
  const control = child.stdio[CONTROL_FD] as Duplex;
  control.on('error', () => undefined); // broken when the handler dies, which `ended` reports

  const fail = (reason: string) => {
    failure ??= reason;
    void child.kill();
  };
  const unwatch =
    pid === undefined
      ? () => undefined
      : settings.watch.add({ pid, mark: child.mark, isConfined: level === 'bubblewrap', limits, end: fail });
  void ended.then(unwatch);

  const stop = async (graceMs = STOP_GRACE_MS) => {
    // Closing this is the request to end.
    control.destroy();
    if (pid !== undefined) {
      await Promise.race([ended, sleep(graceMs)]);
      // Also when it went by itself: what it has started goes with it.
      await child.kill();
    }
    await ended;
    await socket.remove();
  };

  const readiness = await firstOf(ready(control), ended, settings.startTimeoutMs);
  if (readiness !== 'ready' || pid === undefined) {
    // One that has not even become ready is not asked.
    await stop(0);
    await Promise.race([output.ended, sleep(STOP_GRACE_MS)]);
    const why = readiness === 'timeout' ? `it was not ready within ${settings.startTimeoutMs} ms` : readiness;
    throw new HandlerStartError(withOutput(`The handler did not start: ${why}.`, output.lastLines()));
  }
  const { lastLines } = output;
  const instance = { id: instanceId, socket: socket.outside(pid) };
  return { pid, instance, startedAt: performance.now(), ended, lastLines, fail, stop: () => stop() };
}

function spawnHandler(
  { executable, endpointId, services, limits, settings }: HandlerOptions,
  socket: HandlerSocket,
): LimitedProcess {
  const { sandbox, network, threads } = settings;
  const confinement = sandbox.confine(viewOf({ executable, servicesSocket: services.socket }, network));
  return spawnLimited({
    confinement,
    file: confinement.inside(executable),
    args: [],
    cwd: '/tmp',
    env: {
      EDGE_SOCKET: socket.inside,
      EDGE_CONTROL_FD: String(CONTROL_FD),
      EDGE_MAX_THREADS: String(Math.min(threads, limits.processes - OTHER_THREADS)),
      EDGE_ENDPOINT_ID: endpointId,
      EDGE_SERVICES_SOCKET: confinement.inside(services.socket),
      EDGE_SERVICES_TOKEN: services.token,
      EDGE_SERVICES_TIMEOUT_MS: String(services.timeoutMs),
      // Each arena reserves address space of its own, which counts against the limit.
      MALLOC_ARENA_MAX: '2',
    },
    limits: {
      memoryMb: limits.memory_mb + RESERVED_MB,
      fileMb: FILE_MB,
      openFiles: limits.open_files,
      processes: limits.processes,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
}

/** The first process of its sandbox cannot be ended by its own SIGABRT: `abort` ends it in another way. */
function describeEnd({ code, signal }: ProgramEnd): string {
  if (signal === 'SIGSEGV')
    return 'it was ended by SIGSEGV, as by abort(), an exhausted stack or a wrong access to memory';
  return signal ? `it was ended by ${signal}` : `it ended with exit code ${code}`;
}

/** A sentence, and below it what the handler printed last, if anything. */
export function withOutput(sentence: string, lastLines: string): string {
  return lastLines === '' ? sentence : `${sentence}\nIts last output:\n${lastLines}`;
}

const READY = 'ready\n';

/** The handler writes this to its control stream once its socket listens. Nothing is read that it writes after that. */
function ready(control: Duplex): Promise<'ready'> {
  return new Promise((resolve) => {
    const look = () => {
      const first: Buffer | null = control.read(READY.length);
      if (first === null) return;
      control.off('readable', look);
      if (first.toString('latin1') === READY) resolve('ready');
    };
    control.on('readable', look);
  });
}

async function firstOf(
  isReady: Promise<'ready'>,
  ended: Promise<string>,
  timeoutMs: number,
): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'timeout'>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), timeoutMs);
  });
  const first = await Promise.race([isReady, ended, timeout]);
  clearTimeout(timer);
  return first;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
