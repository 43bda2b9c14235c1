/** The command line as people run it: a child process, with a folder of its own for its contexts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.js';

export const EDGE = fileURLToPath(new URL('../../../cli/bin/edge.js', import.meta.url));

/** How a run has ended. */
export interface EdgeResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface EdgeOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Sent to stdin, which is empty otherwise. */
  readonly stdin?: string;
}

/** A run that goes on. */
export interface RunningEdge {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Waits until stdout or stderr has the text. */
  says(text: string | RegExp, limitMs?: number): Promise<void>;
  end(signal?: NodeJS.Signals): Promise<EdgeResult>;
  /** How it ends by itself. */
  readonly result: Promise<EdgeResult>;
}

/** Runs a command to its end. */
export async function edge(args: readonly string[], options: EdgeOptions = {}): Promise<EdgeResult> {
  const { result } = started(args, options);
  return result;
}

/** Starts a command that goes on until it is ended. */
export function startEdge(args: readonly string[], options: EdgeOptions = {}): RunningEdge {
  const { child, result, printed } = started(args, options);
  return {
    pid: child.pid ?? 0,
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    says: async (text, limitMs) => {
      await eventually(() => {
        const all = `${printed.stdout}\n${printed.stderr}`;
        const isSaid = typeof text === 'string' ? all.includes(text) : text.test(all);
        if (!isSaid) throw new Error(`edge has not said ${text}: ${all}`);
      }, limitMs);
    },
    end: (signal = 'SIGINT') => {
      child.kill(signal);
      return result;
    },
    result,
  };
}

function started(args: readonly string[], { cwd, env, stdin = '' }: EdgeOptions) {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(EDGE_|https?_proxy$|no_proxy$|NO_COLOR$)/i.test(name)),
  );
  const child: ChildProcess = spawn(process.execPath, [EDGE, ...args], {
    ...(cwd !== undefined && { cwd }),
    env: { ...inherited, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
    });
  // A command that reads nothing may have ended before.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(stdin);
  const result = new Promise<EdgeResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...printed }));
  });
  return { child, result, printed };
}
