/** One handler process: started, watched until it is ready, listened to, ended. */
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { toError } from '../errors.js';
import { spawnLimited } from '../limited-process.js';
import type { Logger } from '../log.js';
import { UNCONFINED } from '../sandbox/confinement.js';
import { captureOutput } from './handler-output.js';
import type { InstanceRef } from './messages.js';

/** What a handler may use. */
export interface HandlerLimits {
  /** Address space, MiB. */
  readonly memoryMb: number;
  /** Requests it works on at the same time. */
  readonly threads: number;
  /** Milliseconds until it has to be ready. */
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
  readonly instance: InstanceRef;
  readonly endpointId: string;
  readonly services: ServiceAccess;
  readonly limits: HandlerLimits;
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
  /** Ends it, asked first and killed if it does not go, and all it has started. */
  stop(): Promise<void>;
}

/** A handler that was asked to end is killed after this. */
const STOP_GRACE_MS = 1_000;
const CONTROL_FD = 3;

/**
 * Starts a handler and waits until it listens.
 * @throws HandlerStartError when it ends, or is not ready in time
 */
export async function startHandler(options: HandlerOptions): Promise<HandlerProcess> {
  const { instance, limits, endpointId, services } = options;
  const child = spawnLimited({
    confinement: UNCONFINED,
    file: options.executable,
    args: [],
    cwd: dirname(options.executable),
    env: {
      EDGE_SOCKET: instance.socket,
      EDGE_CONTROL_FD: String(CONTROL_FD),
      EDGE_MAX_THREADS: String(limits.threads),
      EDGE_ENDPOINT_ID: endpointId,
      EDGE_SERVICES_SOCKET: services.socket,
      EDGE_SERVICES_TOKEN: services.token,
      EDGE_SERVICES_TIMEOUT_MS: String(services.timeoutMs),
      // Each arena reserves address space of its own, which counts against the limit.
      MALLOC_ARENA_MAX: '2',
    },
    limits: { memoryMb: limits.memoryMb, fileMb: 64, openFiles: 1024 },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const pid = await child.pid;
  const output = captureOutput(child.stdout, child.stderr, options.log.child({ handler_pid: pid }));

  const ended = child.ended.then(
    ({ code, signal }) => (signal ? `it was ended by ${signal}` : `it ended with exit code ${code}`),
    (error: unknown) => `it could not be run: ${toError(error).message}`,
  );
  const control = child.stdio[CONTROL_FD] as Duplex;
  control.on('error', () => undefined); // broken when the handler dies, which `ended` reports

  const stop = async () => {
    // Closing this is the request to end.
    control.destroy();
    if (pid === undefined) return;
    await Promise.race([ended, sleep(STOP_GRACE_MS)]);
    // Also when it went by itself: what it has started goes with it.
    await child.kill();
    await ended;
    await rm(instance.socket, { force: true });
  };

  const readiness = await firstOf(ready(control), ended, limits.startTimeoutMs);
  if (readiness !== 'ready' || pid === undefined) {
    await stop();
    await Promise.race([output.ended, sleep(STOP_GRACE_MS)]);
    const why = readiness === 'timeout' ? `it was not ready within ${limits.startTimeoutMs} ms` : readiness;
    throw new HandlerStartError(withOutput(`The handler did not start: ${why}.`, output.lastLines()));
  }
  return { pid, instance, startedAt: performance.now(), ended, lastLines: output.lastLines, stop };
}

/** A sentence, and below it what the handler printed last, if anything. */
export function withOutput(sentence: string, lastLines: string): string {
  return lastLines === '' ? sentence : `${sentence}\nIts last output:\n${lastLines}`;
}

/** The handler writes `ready` to its control stream once its socket listens. */
function ready(control: Duplex): Promise<'ready'> {
  return new Promise((resolve) => {
    let text = '';
    control.on('data', (chunk: Buffer) => {
      // Anything it writes later is of no meaning, and not kept.
      if (text.length < 16) text += chunk.toString('latin1');
      if (text.startsWith('ready\n')) resolve('ready');
    });
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
