/**
 * Runs a compiler to completion: collects its output, limits time and resources, and kills the whole process tree at a
 * limit.
 */
import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { toError } from '../errors.js';
import type { Cgroups } from '../sandbox/cgroups.js';
import type { Confinement } from '../sandbox/confinement.js';
import { watchDisk } from '../sandbox/disk-watch.js';
import { type LimitedProcess, type ResourceLimits, spawnLimited } from '../sandbox/limited-process.js';
import { watchUsage } from './usage-watch.js';

/** Limits of one run. */
export interface ToolLimits extends ResourceLimits {
  /** Wall-clock milliseconds; Infinity for no limit. */
  readonly timeoutMs: number;
  /** Disk usage of its writable folders together, MiB. */
  readonly diskMb: number;
  /** Memory of all its processes together, MiB. */
  readonly totalMemoryMb: number;
  /** How long all its processes may wait without using the processor, milliseconds; no limit when left out. */
  readonly idleMs?: number;
  /** Processor time that they may use together without progress, milliseconds; no limit when left out. */
  readonly cpuMsWithoutProgress?: number;
}

/** One run of a tool. */
export interface ToolRun {
  /** Paths in the arguments and environment of the tool are those inside the sandbox. */
  readonly confinement: Confinement;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** The folders that it may write to, as paths of this machine. */
  readonly writable: readonly string[];
  /** Aborts the run, like the time limit. */
  readonly signal?: AbortSignal | undefined;
  /** Limits memory and processes of all its processes together, where there are any. */
  readonly groups?: Cgroups | undefined;
  /** Called with each line of its standard output, or of its standard error. */
  readonly onLine?: ((line: string) => void) | undefined;
  readonly onErrorLine?: ((line: string) => void) | undefined;
  /** A number that grows with its progress. */
  readonly progress?: (() => number) | undefined;
}

/** How a run ended. */
export interface ToolResult {
  readonly outcome: 'exited' | 'timed-out' | 'aborted' | 'over-disk' | 'over-memory' | 'idle' | 'no-progress';
  /** null when it was killed by a signal. */
  readonly exitCode: number | null;
  /** The signal that killed it, if any. */
  readonly signal: NodeJS.Signals | null;
  /**
   * Whether the disk may have been full: free space at the first writable folder is low. Without writable folders
   * always possible.
   */
  readonly diskMayBeFull: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

const MEGABYTE = 1024 * 1024;
/** Output beyond this is dropped: a compiler can print without end. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** A failed write frees its space, so a full disk need not be full any more. */
const LOW_SPACE_BYTES = 64 * 1024 * 1024;
/** How long its streams may stay open after all processes were killed: a process that escaped may hold them. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Runs a tool. An exit code that is not 0 is a result, not an error.
 * @throws when the tool cannot be started at all.
 */
export async function runTool(run: ToolRun): Promise<ToolResult> {
  const { totalMemoryMb, processes } = run.limits;
  const group = run.groups?.make({
    memoryBytes: totalMemoryMb * MEGABYTE,
    // One more: the monitor.
    processes: processes === undefined ? undefined : processes + 1,
    cpuPercent: undefined,
  });
  const tool = spawnLimited({ ...run, group, stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = collect(tool.stdout, run.onLine);
  const stderr = collect(tool.stderr, run.onErrorLine);

  let outcome: ToolResult['outcome'] = 'exited';
  let killed: Promise<void> | undefined;
  const end = (reason: ToolResult['outcome']) => {
    if (killed !== undefined) return;
    outcome = reason;
    killed = tool.kill();
  };
  const { timeoutMs } = run.limits;
  const timer = Number.isFinite(timeoutMs) ? setTimeout(() => end('timed-out'), timeoutMs) : undefined;
  const watch = watchDisk(run.writable, run.limits.diskMb, () => end('over-disk'));
  const unwatchUsage = watchUsage(tool.pid, run, end);
  const onAbort = () => end('aborted');
  run.signal?.addEventListener('abort', onAbort);
  if (run.signal?.aborted) onAbort();
  try {
    const { code, signal } = await tool.ended;
    clearTimeout(timer);
    // Remaining processes can hold its streams open and write to its folders.
    await (killed ?? tool.kill());
    await closedSoon(tool);
    if (outcome === 'exited' && group?.hasRunOutOfMemory()) outcome = 'over-memory';
    // Writes since the last check.
    if (outcome === 'exited' && (await watch.isOver())) outcome = 'over-disk';
    const diskMayBeFull = code !== 0 && (await isSpaceLow(run.writable[0]));
    return { outcome, exitCode: code, signal, diskMayBeFull, stdout: stdout(), stderr: stderr() };
  } catch (cause) {
    throw new Error(`${run.file} could not be run: ${toError(cause).message}. ${stderr()}`.trim(), { cause });
  } finally {
    watch.stop();
    unwatchUsage();
    clearTimeout(timer);
    run.signal?.removeEventListener('abort', onAbort);
  }
}

/** Resolves when its streams have closed, or after a grace period. */
async function closedSoon({ closed, stdout, stderr }: LimitedProcess): Promise<void> {
  const timer = setTimeout(() => {
    for (const stream of [stdout, stderr]) stream?.destroy();
  }, CLOSE_GRACE_MS);
  await closed;
  clearTimeout(timer);
}

async function isSpaceLow(folder: string | undefined): Promise<boolean> {
  if (folder === undefined) return true;
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize < LOW_SPACE_BYTES;
}

function collect(stream: Readable | null, onLine?: (line: string) => void): () => string {
  const chunks: Buffer[] = [];
  let length = 0;
  let unfinished = '';
  stream?.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length - chunk.length >= MAX_OUTPUT_BYTES) return;
    chunks.push(chunk);
    if (!onLine) return;
    const lines = (unfinished + chunk.toString('latin1')).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
  return () => Buffer.concat(chunks).toString('utf8', 0, MAX_OUTPUT_BYTES);
}
