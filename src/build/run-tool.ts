/** Runs a compiler to its end: output collected, time and resources limited, the whole process tree ended at the limit. */
import { statfs } from 'node:fs/promises';
import { toError } from '../errors.js';
import { type LimitedProcess, type ResourceLimits, spawnLimited } from '../limited-process.js';
import type { Confinement } from '../sandbox/confinement.js';
import { watchDisk } from './disk-watch.js';
import { watchMemory } from './memory-watch.js';

/** What one run may use. */
export interface ToolLimits extends ResourceLimits {
  /** Wall-clock milliseconds. */
  readonly timeoutMs: number;
  /** What its writable folders may hold together, MiB. */
  readonly diskMb: number;
  /** Memory of all its processes together, MiB. */
  readonly totalMemoryMb: number;
}

/** One run of a tool. */
export interface ToolRun {
  /** The paths of the tool, in its arguments and so on, are those of inside. */
  readonly confinement: Confinement;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** The folders that it may write to, as they are called on this machine. */
  readonly writable: readonly string[];
  /** Ends the run early, as the time limit does. */
  readonly signal?: AbortSignal | undefined;
}

/** How a run ended. */
export interface ToolResult {
  readonly outcome: 'exited' | 'timed-out' | 'aborted' | 'over-disk' | 'over-memory';
  /** null when a signal ended it. */
  readonly exitCode: number | null;
  /** What ended it, if not itself. */
  readonly signal: NodeJS.Signals | null;
  /**
   * Whether a disk may have been full: that of its first writable folder has little room left. A tool without such folders
   * may have met any.
   */
  readonly mayLackRoom: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Output beyond this is dropped: a compiler can print without end. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** What a tool could not write takes no room. */
const LITTLE_ROOM_BYTES = 64 * 1024 * 1024;
/** How long, after everything was killed, its streams may stay open: something that has hidden well may hold them. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Runs a tool. An exit code that is not 0 is a result, not an error.
 * @throws when the tool cannot be started at all.
 */
export async function runTool(run: ToolRun): Promise<ToolResult> {
  const tool = spawnLimited({ ...run, stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = collect(tool.stdout);
  const stderr = collect(tool.stderr);

  let outcome: ToolResult['outcome'] = 'exited';
  let killed: Promise<void> | undefined;
  const end = (reason: ToolResult['outcome']) => {
    if (killed !== undefined) return;
    outcome = reason;
    killed = tool.kill();
  };
  const timer = setTimeout(() => end('timed-out'), run.limits.timeoutMs);
  const watch = watchDisk(run.writable, run.limits.diskMb, () => end('over-disk'));
  const unwatchMemory = watchMemory(tool.pid, run.confinement.reports, run.limits.totalMemoryMb, () =>
    end('over-memory'),
  );
  const onAbort = () => end('aborted');
  run.signal?.addEventListener('abort', onAbort);
  if (run.signal?.aborted) onAbort();
  try {
    const { code, signal } = await tool.ended;
    clearTimeout(timer);
    // It may leave processes behind, which can hold its streams open and write to its folders.
    await (killed ?? tool.kill());
    await closedSoon(tool);
    // What it wrote at the end nobody has seen yet.
    if (outcome === 'exited' && (await watch.isOver())) outcome = 'over-disk';
    const mayLackRoom = code !== 0 && (await hasLittleRoom(run.writable[0]));
    return { outcome, exitCode: code, signal, mayLackRoom, stdout: stdout(), stderr: stderr() };
  } catch (cause) {
    throw new Error(`${run.file} could not be run: ${toError(cause).message}. ${stderr()}`.trim(), { cause });
  } finally {
    watch.stop();
    unwatchMemory();
    clearTimeout(timer);
    run.signal?.removeEventListener('abort', onAbort);
  }
}

/** Resolves when its streams have closed, or were given up. */
async function closedSoon({ closed, stdout, stderr }: LimitedProcess): Promise<void> {
  const timer = setTimeout(() => {
    for (const stream of [stdout, stderr]) stream?.destroy();
  }, CLOSE_GRACE_MS);
  await closed;
  clearTimeout(timer);
}

async function hasLittleRoom(folder: string | undefined): Promise<boolean> {
  if (folder === undefined) return true;
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize < LITTLE_ROOM_BYTES;
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on('data', (chunk: Buffer) => {
    if (length < MAX_OUTPUT_BYTES) chunks.push(chunk);
    length += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8', 0, MAX_OUTPUT_BYTES);
}
