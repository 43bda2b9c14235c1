/** Compiles one handler with rustc against a prepared dependency set. */
import { lstat, mkdir, mkdtemp, realpath, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Diagnostic } from '../model/diagnostic.js';
import { DEFAULT_EDITION, type Edition } from '../model/source-files.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { isErrno } from '../util/errno.js';
import { makePassable } from '../util/untrusted-users.js';
import { buildEnvironment, buildView, INSIDE, INSIDE_NAMES } from './build-view.js';
import {
  type FailedTool,
  type FolderNames,
  parseRustcOutput,
  plain,
  whyEnded,
  withCrateHelp,
  withoutMachinePaths,
} from './diagnostics.js';
import { crateSourcesOf, type Libraries, linkingTo, targetOf } from './prepared-sets.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
import { entryOf, hasText, type SourceTree, writeTree } from './source-tree.js';
import type { Toolchain } from './toolchain.js';

const EDITION_FLAG = '--edition=';

/**
 * Flags of every handler build; rust/sdk/INTERNALS.md has the measurements. Part of the toolchain's fingerprint: a
 * change rebuilds all handlers.
 *
 * At level `s` rustc uses the generic code that is already compiled into the SDK instead of compiling it again for each
 * handler, which halves the time of a build. The SDK's own request path and all crates are at level 3.
 */
export const HANDLER_PROFILE = [
  // Of sources that name no other. It stays among the flags: executables of before have their fingerprint.
  EDITION_FLAG + DEFAULT_EDITION,
  '--crate-type=bin',
  '--crate-name=handler',
  '-Copt-level=s',
  '-Ccodegen-units=2',
  '-Clto=off',
  '-Cstrip=symbols',
];

/** The flags of a handler of an edition. */
function profileOf(edition: Edition | null): string[] {
  return HANDLER_PROFILE.map((flag) =>
    flag.startsWith(EDITION_FLAG) ? EDITION_FLAG + (edition ?? DEFAULT_EDITION) : flag,
  );
}

/** The folder of the source within that of the compilation: what rustc writes is beside it. */
const SOURCE = 'source';
const EXECUTABLE = 'handler';
/** Executables of handlers have a few megabytes; a sparse file can have any size. */
const MAX_EXECUTABLE_BYTES = 256 * 1024 * 1024;

/** A compiler that waits this long waits for ever: a source can make it read its own pipes. A slow disk is no wait. */
const IDLE_MS = 5_000;

/** The outcome of one rustc run, and how many milliseconds it took. */
export type Compilation = { readonly ms: number } & Outcome;

type Outcome =
  | { readonly ok: true; readonly executable: string; readonly diagnostics: readonly Diagnostic[] }
  | FailedTool;

/** The input of one compilation. */
export interface CompileRequest {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  readonly source: SourceTree;
  /** The libraries that `DependencySets.prepare` has built. */
  readonly libraries: Libraries;
  /** The environment that tools get to download crates. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Waits until there may be one more compiler. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal | undefined;
}

/** The folders of one compilation. */
interface CompileFolders {
  /** Writable for macros of crates, which are untrusted programs. */
  readonly work: string;
  /** The executable is moved here when they have ended. */
  readonly own: string;
}

/** Compiles in a new folder below `scratch` and passes the executable to `use`; both are deleted afterwards. */
export async function compileHandler<T>(
  scratch: string,
  request: CompileRequest,
  use: (compilation: Compilation) => Promise<T>,
): Promise<T> {
  const own = await mkdtemp(join(scratch, 'build-'));
  try {
    await makePassable(own);
    const work = join(own, 'work');
    await mkdir(work, { mode: 0o700 });
    const compilation = await request.inTurn(async () => {
      await writeTree(join(work, SOURCE), request.source);
      const started = performance.now();
      const outcome = await compileIn({ own, work }, request);
      return { ...outcome, ms: Math.round(performance.now() - started) };
    });
    return await use(compilation);
  } finally {
    await removeTree(own);
  }
}

async function compileIn({ own, work }: CompileFolders, request: CompileRequest): Promise<Outcome> {
  const { toolchain, sandbox, source, libraries, limits, signal } = request;
  const confinement = sandbox.confine(
    buildView(toolchain, {
      readOnly: [
        [targetOf(libraries), INSIDE.target],
        [crateSourcesOf(libraries), `${INSIDE.cargo}/registry/src`],
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
      ...profileOf(source.edition),
      '--error-format=json',
      ...linkingTo(libraries, inside(targetOf(libraries))),
      ...['-o', `../${EXECUTABLE}`, entryOf(source)],
    ],
    // Paths of the source are relative in diagnostics and panics.
    cwd: inside(join(work, SOURCE)),
    env: buildEnvironment(toolchain, request.env, work, confinement),
    limits: { ...limits, idleMs: IDLE_MS },
    groups: sandbox.groups,
    writable: [work],
    signal,
  });
  const failed = (...reasons: readonly Diagnostic[]): FailedTool => ({
    ok: false,
    outcome: result.outcome,
    diskMayBeFull: result.diskMayBeFull,
    diagnostics: reasons,
  });
  const ended = whyEnded(result.outcome, limits);
  if (ended) return failed(ended);
  const names =
    result.stderr === '' || confinement.hasNamespaces ? INSIDE_NAMES : await folderNames(work, request);
  const diagnostics = withoutMachinePaths(
    parseRustcOutput(result.stderr, new Set([entryOf(source), ...source.contents.keys()])),
    names,
  ).map(withCrateHelp);
  if (result.exitCode === 0) {
    if (!hasText(source, SERVES)) return failed(NO_ENTRY_POINT, ...diagnostics);
    const executable = await takeExecutable(join(work, EXECUTABLE), own);
    if (executable === undefined) return failed(NO_EXECUTABLE, ...diagnostics);
    return { ok: true, executable, diagnostics };
  }
  return failed(...entryPointHint(diagnostics), ...crashNote(result, diagnostics), ...diagnostics);
}

/**
 * Moves the executable out of reach of the compiler before checking it: macros of crates can replace it with anything.
 * @returns its path; undefined when it is not an executable that a compiler makes
 */
async function takeExecutable(made: string, folder: string): Promise<string | undefined> {
  const moved = join(folder, EXECUTABLE);
  try {
    await rename(made, moved);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  const status = await lstat(moved);
  // A link, symbolic or hard, could be used to read another file.
  const isOne = status.isFile() && status.nlink === 1 && status.size > 0;
  return isOne && status.size <= MAX_EXECUTABLE_BYTES ? moved : undefined;
}

const NO_EXECUTABLE = plain(
  'The compiler ended without an error, but what it left is no executable, or one of more than 256 MiB. A macro of a ' +
    'crate may have put it there.',
);

/** A macro of the SDK, or the loop of SDK 0.1: a program with neither would exit at once. */
const SERVES = /\bhandler_(loop\w*|ws|ws_async)\s*(!|as\s)|\bread_request\b/;

const NO_ENTRY_POINT = plain(
  'This handler has no entry point. End the source with a macro that names your function and makes the `main`: ' +
    '`handler_loop!(handle);` for `fn handle(req: Request) -> Response`, `handler_loop_result!(handle);` for one that ' +
    'returns `Result<Response, HandlerError>`, and `handler_loop_async!(handle);` or ' +
    '`handler_loop_async_result!(handle);` if it is an `async fn`; `handler_ws!(handle);` and `handler_ws_async!(handle);` ' +
    'for WebSockets.',
);

/**
 * rustc says "`main` function not found", but handler authors do not write a `main`. If expansion did not reach the
 * macro that generates it, the other errors are the reason.
 */
function entryPointHint(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  if (!diagnostics.some(({ code }) => code === 'E0601')) return [];
  if (diagnostics.some(({ message }) => /handler_(loop|ws)/.test(message))) return [];
  return [NO_ENTRY_POINT];
}

/** The folders that a compiler without namespaces knows, with the names to show for them. */
async function folderNames(work: string, { toolchain, libraries }: CompileRequest): Promise<FolderNames> {
  const names: FolderNames = [
    [join(work, SOURCE), '.'],
    [work, 'build'],
    [toolchain.sdk, 'rust-edge-gateway-sdk'],
    [targetOf(libraries), 'dependencies'],
    [toolchain.sysroot, 'toolchain'],
  ];
  // Tools resolve symbolic links inconsistently.
  const resolved = names.map(async ([path, name]) => [await realpath(path).catch(() => path), name] as const);
  return [...names, ...(await Promise.all(resolved))];
}

function crashNote({ exitCode, signal }: ToolResult, diagnostics: readonly Diagnostic[]): Diagnostic[] {
  // The output of a crashed compiler is not a reason.
  if (signal === null && diagnostics.some(({ level }) => level.startsWith('error'))) return [];
  const end = signal === null ? `ended with exit code ${exitCode}` : `was ended by ${signal}`;
  const limits = 'memory (COMPILE_MEMORY_MB) or CPU time (COMPILE_CPU_SECONDS)';
  return [plain(`The compiler ${end} without naming an error; it may have run into the limit of ${limits}.`)];
}
