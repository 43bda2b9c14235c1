/** One handler process: starts it in its sandbox, waits until it is ready, captures its output, and ends it. */
import type { Duplex } from 'node:stream';
import type { Instance } from '../../contracts/front.js';
import { toError } from '../../errors.js';
import type { LimitsInForce } from '../../model/endpoint-limits.js';
import type { Cgroup, GroupLimits } from '../../sandbox/cgroups.js';
import { watchDisk } from '../../sandbox/disk-watch.js';
import { type LimitedProcess, spawnLimited } from '../../sandbox/limited-process.js';
import type { ProgramEnd } from '../../sandbox/monitor.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import type { Logger } from '../../util/log.js';
import { type HandlerFiles, makeHandlerFiles } from './handler-files.js';
import { captureOutput, type OutputListeners } from './handler-output.js';
import { ABANDONED, becameReady } from './handler-readiness.js';
import { type HandlerNetwork, TMP_MB, viewOf } from './handler-view.js';
import type { HandlerWatch } from './handler-watch.js';

/** Settings of all handlers of a gateway. */
export interface HandlerSettings {
  readonly sandbox: Sandbox;
  readonly network: HandlerNetwork;
  readonly watch: HandlerWatch;
  /** Concurrent requests per handler. */
  readonly threads: number;
  /** Start timeout, milliseconds. */
  readonly startTimeoutMs: number;
}

/** Authenticates one handler process. */
export interface IssuedToken {
  readonly token: string;
  /** Called when the process has ended. */
  revoke(): Promise<void>;
}

/** How handlers reach backend services. */
export interface ServiceAccess {
  /** The actor host's socket. */
  readonly socket: string;
  /** Makes the token of one process. @param user that only it runs as */
  issueToken(endpointId: string, user: number | undefined): Promise<IssuedToken>;
  /** Default deadline of a call, milliseconds. */
  readonly timeoutMs: number;
}

/** Who wants to know of it. */
export interface HandlerListeners extends OutputListeners {
  /** Called again and again: what it has used of the processor since the last time, and its memory. */
  readonly onUse?: ((cpuSeconds: number, bytes: number) => void) | undefined;
}

/** Options of a handler process. */
export interface HandlerOptions {
  /** The executable, on this machine. */
  readonly executable: string;
  readonly instanceId: number;
  /** Folder for sockets of handlers without namespaces. */
  readonly runDir: string;
  readonly endpointId: string;
  /** Environment variables of the endpoint by name, secrets included. */
  readonly variables: Readonly<Record<string, string>>;
  readonly services: ServiceAccess;
  readonly limits: LimitsInForce;
  readonly settings: HandlerSettings;
  /** The logger for the output of the handler; adds the endpoint id to each line. */
  readonly log: Logger;
  readonly listeners: HandlerListeners;
  /** Aborted when nobody wants it any more. */
  readonly abandoned?: AbortSignal | undefined;
}

/** The handler did not become ready. The message has the last lines it printed. */
export class HandlerStartError extends Error {
  override readonly name = 'HandlerStartError';
}

/** A handler process that has become ready. */
export interface HandlerProcess {
  readonly pid: number;
  readonly instance: Instance;
  readonly startedAt: number;
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<string>;
  /** Resolves when all that it has printed was read: after its end. */
  readonly outputEnded: Promise<unknown>;
  /** Its last lines of output. */
  lastLines(): string;
  /** Kills it and reports it as crashed for this reason. */
  fail(reason: string): void;
  /** Ends it gracefully, or kills it after a grace period, and kills all its processes. */
  stop(): Promise<void>;
}

/** Grace period before a handler is killed. */
const STOP_GRACE_MS = 1_000;
const MEGABYTE = 1024 * 1024;
/** The version of frames that handlers may use. */
const PROTOCOL = '2';
const CONTROL_FD = 3;
const RECORDS_FD = 4;
/** Largest file it may write, MiB. */
const FILE_MB = 64;
/** Address space that threads and the allocator reserve without using it, MiB. */
const RESERVED_MB = 256;
/** Threads of the SDK beside those that run handlers. */
const OTHER_THREADS = 6;

/**
 * Starts a handler and waits until it listens.
 * @throws HandlerStartError when it ends, is not ready in time, or is abandoned before
 */
export async function startHandler(options: HandlerOptions): Promise<HandlerProcess> {
  const { executable, endpointId, services, instanceId, runDir, limits, settings, log, listeners } = options;
  if (options.abandoned?.aborted) throw new HandlerStartError(`The handler did not start: ${ABANDONED}.`);
  const view = viewOf({ executable, servicesSocket: services.socket }, settings.network);
  const files = await makeHandlerFiles(settings.sandbox.confine(view), executable, runDir, instanceId, log);
  const { confinement } = files;
  let access: IssuedToken | undefined;
  let group: Cgroup | undefined;
  let child: LimitedProcess;
  try {
    confinement.user?.claim();
    access = await services.issueToken(endpointId, confinement.user?.id);
    group = settings.sandbox.groups?.make(groupLimits(limits));
    child = spawnHandler(options, files, access.token, group);
  } catch (error) {
    confinement.user?.release();
    await Promise.all([files.remove(), access?.revoke()]);
    throw error;
  }
  const { revoke } = access;
  const { stdout, stderr } = child;
  const records = child.stdio[RECORDS_FD] as Duplex;
  records.on('error', () => undefined); // broken when the handler dies, which `ended` reports
  // At once: what nobody reads when a process ends is lost, and this one may end before its id is known.
  const ownLog = log.child({});
  const output = captureOutput({ stdout, stderr, records }, ownLog, listeners);
  const pid = await child.pid;
  ownLog.setBindings({ handler_pid: pid });

  let failure: string | undefined;
  const ended = child.ended.then(
    // One that has ended by itself says more than what was noticed of it meanwhile.
    (end) =>
      (end.signal === 'SIGKILL' ? failure : undefined) ??
      (group?.hasRunOutOfMemory() ? outOfMemory(limits) : describeEnd(end)),
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
      : settings.watch.add({ pid, confinement, limits, group, end: fail, used: listeners.onUse });
  const tooLarge = `its files took more than ${TMP_MB} MiB`;
  const folders = files.folder === undefined ? [] : [files.folder];
  const disk = watchDisk(folders, TMP_MB, () => fail(tooLarge));
  void ended.then(() => {
    unwatch();
    disk.stop();
  });
  const revoked = ended
    .then(revoke)
    .catch((error: unknown) =>
      log.warn({ err: toError(error) }, 'the token of an ended handler could not be revoked'),
    );

  const stop = async (graceMs = STOP_GRACE_MS) => {
    // Closing the control stream requests the end.
    control.destroy();
    if (pid !== undefined) {
      await Promise.race([ended, sleep(graceMs)]);
      // Also after it has ended: its child processes may still be running.
      await child.kill();
    }
    await revoked;
    await files.remove();
  };

  const started = await becameReady(control, ended, settings.startTimeoutMs, options.abandoned);
  if ('failure' in started || pid === undefined) {
    // Killed without a grace period, because it never became ready.
    await stop(0);
    await Promise.race([output.ended, sleep(STOP_GRACE_MS)]);
    const why = 'failure' in started ? started.failure : await ended;
    throw new HandlerStartError(withOutput(`The handler did not start: ${why}.`, output.lastLines()));
  }
  const { lastLines, ended: outputEnded } = output;
  const instance = { id: instanceId, socket: files.socketOutside(pid), takes: started.takes };
  const startedAt = performance.now();
  return { pid, instance, startedAt, ended, outputEnded, lastLines, fail, stop: () => stop() };
}

/** One process more: the monitor. */
function groupLimits({ memory_mb, processes, cpu_percent }: LimitsInForce): GroupLimits {
  return { memoryBytes: memory_mb * MEGABYTE, processes: processes + 1, cpuPercent: cpu_percent };
}

function outOfMemory({ memory_mb }: LimitsInForce): string {
  return `it used more memory than the ${memory_mb} MiB that it may use (memory_mb)`;
}

function spawnHandler(
  { endpointId, variables, services, limits, settings }: HandlerOptions,
  { executable, socket, tmp, confinement }: HandlerFiles,
  token: string,
  group: Cgroup | undefined,
): LimitedProcess {
  return spawnLimited({
    confinement,
    group,
    file: executable,
    args: [],
    cwd: tmp,
    env: {
      ...variables,
      ...(tmp === '/tmp' ? {} : { TMPDIR: tmp }),
      EDGE_SOCKET: socket,
      EDGE_CONTROL_FD: String(CONTROL_FD),
      EDGE_PROTOCOL: PROTOCOL,
      EDGE_LOG_FD: String(RECORDS_FD),
      EDGE_MAX_THREADS: String(Math.min(settings.threads, limits.processes - OTHER_THREADS)),
      EDGE_ENDPOINT_ID: endpointId,
      EDGE_SERVICES_SOCKET: confinement.inside(services.socket),
      EDGE_SERVICES_TOKEN: token,
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
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
}

/** SIGABRT does not end the init process of a PID namespace, so there `abort` ends with SIGSEGV. */
function describeEnd({ code, signal }: ProgramEnd): string {
  if (signal === 'SIGSEGV' || signal === 'SIGABRT')
    return `it was ended by ${signal}, as by abort(), an exhausted stack or a wrong access to memory`;
  return signal ? `it was ended by ${signal}` : `it ended with exit code ${code}`;
}

/** Appends the last output of the handler, if any, to a sentence. */
export function withOutput(sentence: string, lastLines: string): string {
  return lastLines === '' ? sentence : `${sentence}\nIts last output:\n${lastLines}`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
