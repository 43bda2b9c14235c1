/** Compiles one handler with rustc against a prepared dependency set. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Limiter } from '../limiter.js';
import { UNCONFINED } from '../sandbox/confinement.js';
import {
  type Diagnostic,
  type FolderNames,
  parseRustcOutput,
  plain,
  timeLimit,
  withoutMachinePaths,
} from './diagnostics.js';
import { runTool, type ToolLimits } from './run-tool.js';
import type { Toolchain } from './toolchain.js';

/**
 * Flags of every handler build; sdk/INTERNALS.md has the measurements behind them. Part of the toolchain's fingerprint:
 * changing them builds handlers anew.
 *
 * At level `s` rustc uses the generic code that is already compiled into the SDK instead of compiling it again for each
 * handler, which halves the time of a build. The SDK's own request path and all crates are at level 3.
 */
export const HANDLER_PROFILE = [
  '--edition=2021',
  '--crate-type=bin',
  '--crate-name=handler',
  '-Copt-level=s',
  '-Ccodegen-units=2',
  '-Clto=off',
  '-Cstrip=symbols',
] as const;

/** As diagnostics name it. */
const SOURCE_FILE = 'handler.rs';

/** The outcome of one rustc run, and how many milliseconds it took. */
export type Compilation = { readonly ms: number } & Outcome;

type Outcome =
  | { readonly ok: true; readonly executable: string; readonly diagnostics: readonly Diagnostic[] }
  | { readonly ok: false; readonly timedOut: boolean; readonly diagnostics: readonly Diagnostic[] };

/** What one compilation works on. */
export interface CompileJob {
  readonly toolchain: Toolchain;
  readonly code: string;
  /** From `DependencySets.prepare`. */
  readonly libraries: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Lets so many compilers run at a time as there are cores to run them. */
  readonly slots: Limiter;
  readonly signal: AbortSignal | undefined;
}

/**
 * Compiles in a fresh folder below `scratch` and hands the executable to `use`; both are gone afterwards.
 */
export async function compileHandler<T>(
  scratch: string,
  job: CompileJob,
  use: (compilation: Compilation) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(scratch, 'build-'));
  try {
    await writeFile(join(folder, SOURCE_FILE), job.code);
    const compilation = await job.slots.run(async () => {
      const started = performance.now();
      const outcome = await compileIn(folder, job);
      return { ...outcome, ms: Math.round(performance.now() - started) };
    });
    return await use(compilation);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compileIn(folder: string, job: CompileJob): Promise<Outcome> {
  const result = await runTool({
    confinement: UNCONFINED,
    file: job.toolchain.rustc,
    args: [...HANDLER_PROFILE, '--error-format=json', ...job.libraries, '-o', 'handler', SOURCE_FILE],
    cwd: folder,
    env: { ...job.env, TMPDIR: folder },
    limits: job.limits,
    signal: job.signal,
  });
  const names = result.stderr === '' ? [] : await folderNames(folder, job);
  const diagnostics = withoutMachinePaths(parseRustcOutput(result.stderr, SOURCE_FILE), names);
  if (result.outcome === 'exited' && result.exitCode === 0) {
    if (!SERVES.test(job.code)) {
      return { ok: false, timedOut: false, diagnostics: [NO_ENTRY_POINT, ...diagnostics] };
    }
    return { ok: true, executable: join(folder, 'handler'), diagnostics };
  }
  if (result.outcome === 'timed-out')
    return { ok: false, timedOut: true, diagnostics: [timeLimit(job.limits.timeoutMs)] };
  if (result.outcome === 'aborted')
    return { ok: false, timedOut: false, diagnostics: [plain('The build was cancelled.')] };
  return {
    ok: false,
    timedOut: false,
    diagnostics: [...entryPointHint(diagnostics), ...diagnostics, ...crashNote(result.exitCode, diagnostics)],
  };
}

/** A macro of the SDK, or the loop of SDK 0.1: a program with neither would end as soon as it is started. */
const SERVES = /\bhandler_loop\w*\s*(!|as\s)|\bread_request\b/;

const NO_ENTRY_POINT = plain(
  'This handler has no entry point. End the source with a macro that names your function and makes the `main`: ' +
    '`handler_loop!(handle);` for `fn handle(req: Request) -> Response`, `handler_loop_result!(handle);` for one that ' +
    'returns `Result<Response, HandlerError>`, and `handler_loop_async!(handle);` or ' +
    '`handler_loop_async_result!(handle);` if it is an `async fn`.',
);

/**
 * rustc says "`main` function not found", but handler authors never write a `main`. When it did not get as far as the
 * macro that makes one, what it says of that is the reason.
 */
function entryPointHint(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  if (!diagnostics.some(({ code }) => code === 'E0601')) return [];
  if (diagnostics.some(({ message }) => message.includes('handler_loop'))) return [];
  return [NO_ENTRY_POINT];
}

/** What precedes the folder of the libraries among the arguments. */
const SET = 'dependency=';

/** The folders that the compiler was told of, as the author of the handler may read them. */
async function folderNames(folder: string, { toolchain, libraries }: CompileJob): Promise<FolderNames> {
  const set = libraries
    .find((arg) => arg.startsWith(SET))
    ?.slice(SET.length)
    .replace(/\/target\/release\/deps$/, '');
  const names: FolderNames = [
    [folder, '.'],
    [toolchain.sdk, 'rust-edge-gateway-sdk'],
    ...(set ? [[set, 'dependencies'] as const] : []),
    // bin/rustc of the toolchain; without a path, it is whatever the PATH has.
    ...(toolchain.rustc.startsWith('/') ? [[dirname(dirname(toolchain.rustc)), 'toolchain'] as const] : []),
  ];
  // The tools resolve some links and not others.
  const resolved = names.map(async ([path, name]) => [await realpath(path).catch(() => path), name] as const);
  return [...names, ...(await Promise.all(resolved))];
}

function crashNote(exitCode: number | null, diagnostics: readonly Diagnostic[]): Diagnostic[] {
  if (diagnostics.some(({ level }) => level.startsWith('error'))) return [];
  const end = exitCode === null ? 'was ended by a signal' : `ended with exit code ${exitCode}`;
  return [
    plain(
      `The compiler ${end} without naming an error; it may have run into the memory limit (COMPILE_MEMORY_MB).`,
    ),
  ];
}
