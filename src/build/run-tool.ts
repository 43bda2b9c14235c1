/** Runs a compiler to its end: output collected, time and resources limited, the whole process tree ended at the limit. */
import { killGroup, killTree, newMark, type ResourceLimits, spawnLimited } from '../limited-process.js';

/** What one run may use. */
export interface ToolLimits extends ResourceLimits {
  /** Wall-clock milliseconds. */
  readonly timeoutMs: number;
}

/** One run of a tool. */
export interface ToolRun {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Ends the run early, as the time limit does. */
  readonly signal?: AbortSignal | undefined;
}

/** How a run ended. */
export interface ToolResult {
  readonly outcome: 'exited' | 'timed-out' | 'aborted';
  /** null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Output beyond this is dropped: a compiler can print without end. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** The streams of a tool close with its end, unless another process holds them. */
const UNCLOSED_MS = 100;

/**
 * Runs a tool. An exit code that is not 0 is a result, not an error.
 * @throws when the tool cannot be started at all.
 */
export async function runTool(run: ToolRun): Promise<ToolResult> {
  const mark = newMark();
  const child = spawnLimited({ ...run, stdio: ['ignore', 'pipe', 'pipe'], mark });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);

  let outcome: ToolResult['outcome'] = 'exited';
  let killed: Promise<void> | undefined;
  const end = (reason: ToolResult['outcome']) => {
    if (killed || child.pid === undefined) return;
    outcome = reason;
    killed = killTree(child.pid, mark);
  };
  const timer = setTimeout(() => end('timed-out'), run.limits.timeoutMs);
  let unclosed: NodeJS.Timeout | undefined;
  child.once('exit', () => {
    clearTimeout(timer);
    // It may leave processes behind. Those of its group end at once, those that hold its streams open soon; what has
    // gone further is for `killLeftovers`.
    if (child.pid !== undefined) killGroup(child.pid);
    unclosed = setTimeout(() => end('exited'), UNCLOSED_MS);
  });
  const onAbort = () => end('aborted');
  run.signal?.addEventListener('abort', onAbort);
  if (run.signal?.aborted) onAbort();
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (outcome !== 'exited') await killed;
    return { outcome, exitCode, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(timer);
    clearTimeout(unclosed);
    run.signal?.removeEventListener('abort', onAbort);
  }
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
