/** Compiles one handler with rustc against a prepared dependency set. */
import { lstat, mkdir, mkdtemp, realpath, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Limiter } from '../limiter.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { buildEnvironment, buildView, INSIDE, INSIDE_NAMES } from './build-view.js';
import { cratesOf, type Libraries, linkingTo, targetOf } from './dependency-sets.js';
import {
  type Diagnostic,
  type FailedTool,
  type FolderNames,
  parseRustcOutput,
  plain,
  whyEnded,
  withoutMachinePaths,
} from './diagnostics.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
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
const EXECUTABLE = 'handler';
/** Those of handlers have some megabytes; a file with holes can be of any size and take no room. */
const MAX_EXECUTABLE_BYTES = 256 * 1024 * 1024;

/** The outcome of one rustc run, and how many milliseconds it took. */
export type Compilation = { readonly ms: number } & Outcome;

type Outcome =
  | { readonly ok: true; readonly executable: string; readonly diagnostics: readonly Diagnostic[] }
  | FailedTool;

/** What one compilation works on. */
export interface CompileJob {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  readonly code: string;
  /** From `DependencySets.prepare`. */
  readonly libraries: Libraries;
  /** The environment that tools get to download crates. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Lets so many compilers run at a time as there are cores to run them. */
  readonly slots: Limiter;
  readonly signal: AbortSignal | undefined;
}

/** The folders of one compilation. */
interface CompileFolders {
  /** Macros of crates, which are programs of strangers, can write here. */
  readonly work: string;
  /** Where the executable is put when they have ended. */
  readonly own: string;
}

/**
 * Compiles in a fresh folder below `scratch` and hands the executable to `use`; both are gone afterwards.
 */
export async function compileHandler<T>(
  scratch: string,
  job: CompileJob,
  use: (compilation: Compilation) => Promise<T>,
): Promise<T> {
  const own = await mkdtemp(join(scratch, 'build-'));
  try {
    const work = join(own, 'work');
    await mkdir(work);
    await writeFile(join(work, SOURCE_FILE), job.code);
    const compilation = await job.slots.run(async () => {
      const started = performance.now();
      const outcome = await compileIn({ own, work }, job);
      return { ...outcome, ms: Math.round(performance.now() - started) };
    });
    return await use(compilation);
  } finally {
    await removeTree(own);
  }
}

async function compileIn({ own, work }: CompileFolders, job: CompileJob): Promise<Outcome> {
  const { toolchain, sandbox, libraries, limits, signal } = job;
  const confinement = sandbox.confine(
    buildView(toolchain, {
      readOnly: [
        [targetOf(libraries), INSIDE.target],
        [cratesOf(libraries), `${INSIDE.cargo}/registry/src`],
      ],
      writable: [[work, INSIDE.build]],
    }),
  );
  await confinement.handOver(work);
  const inside = (path: string) => confinement.inside(path);
  const result = await runTool({
    confinement,
    file: inside(toolchain.rustc),
    args: [
      ...HANDLER_PROFILE,
      '--error-format=json',
      ...linkingTo(libraries, inside(targetOf(libraries))),
      ...['-o', EXECUTABLE, SOURCE_FILE],
    ],
    cwd: inside(work),
    env: buildEnvironment(toolchain, job.env, inside(work), inside),
    limits,
    writable: [work],
    signal,
  });
  const failed = (...reasons: readonly Diagnostic[]): FailedTool => ({
    ok: false,
    timedOut: result.outcome === 'timed-out',
    mayLackRoom: result.mayLackRoom,
    diagnostics: reasons,
  });
  const ended = whyEnded(result.outcome, limits);
  if (ended) return failed(ended);
  const names = result.stderr === '' || confinement.reports ? INSIDE_NAMES : await folderNames(work, job);
  const diagnostics = withoutMachinePaths(parseRustcOutput(result.stderr, SOURCE_FILE), names);
  if (result.exitCode === 0) {
    if (!SERVES.test(job.code)) return failed(NO_ENTRY_POINT, ...diagnostics);
    const executable = await takeExecutable(join(work, EXECUTABLE), own);
    if (executable === undefined) return failed(NO_EXECUTABLE, ...diagnostics);
    return { ok: true, executable, diagnostics };
  }
  return failed(...entryPointHint(diagnostics), ...crashNote(result, diagnostics), ...diagnostics);
}

/**
 * Takes what was compiled out of reach of whatever has made it, and looks at it then: macros of crates can put anything
 * in its place.
 * @returns where it is; undefined when it is no executable that a compiler makes
 */
async function takeExecutable(made: string, folder: string): Promise<string | undefined> {
  const taken = join(folder, EXECUTABLE);
  try {
    await rename(made, taken);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const status = await lstat(taken);
  // A link, or another name of a file that is elsewhere, would be a way to read that.
  const isOne = status.isFile() && status.nlink === 1 && status.size > 0;
  return isOne && status.size <= MAX_EXECUTABLE_BYTES ? taken : undefined;
}

const NO_EXECUTABLE = plain(
  'The compiler ended without an error, but what it left is no executable, or one of more than 256 MiB. A macro of a ' +
    'crate may have put it there.',
);

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

/** The folders that the compiler was told of without a sandbox, as the author of the handler may read them. */
async function folderNames(work: string, { toolchain, libraries }: CompileJob): Promise<FolderNames> {
  const names: FolderNames = [
    [work, '.'],
    [toolchain.sdk, 'rust-edge-gateway-sdk'],
    [targetOf(libraries), 'dependencies'],
    [toolchain.sysroot, 'toolchain'],
  ];
  // The tools resolve some links and not others.
  const resolved = names.map(async ([path, name]) => [await realpath(path).catch(() => path), name] as const);
  return [...names, ...(await Promise.all(resolved))];
}

function crashNote({ exitCode, signal }: ToolResult, diagnostics: readonly Diagnostic[]): Diagnostic[] {
  // What a compiler that crashes prints is no reason.
  if (signal === null && diagnostics.some(({ level }) => level.startsWith('error'))) return [];
  const end = signal === null ? `ended with exit code ${exitCode}` : `was ended by ${signal}`;
  const limits = 'memory (COMPILE_MEMORY_MB) or CPU time (COMPILE_CPU_SECONDS)';
  return [plain(`The compiler ${end} without naming an error; it may have run into the limit of ${limits}.`)];
}
