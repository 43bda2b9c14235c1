/** Parses the output of cargo. Build scripts and macros are untrusted code that can make it print anything. */
import { posix } from 'node:path';
import type { Diagnostic } from '../model/diagnostic.js';
import { MAX_DIAGNOSTICS, parseRustcOutput, plain } from './diagnostics.js';
import type { ToolResult } from './run-tool.js';
import type { CargoMetadata } from './set-graph.js';

interface CargoMessage {
  readonly reason: string;
  readonly package_id?: string;
  readonly target?: { readonly kind: readonly string[]; readonly name: string };
  readonly filenames?: readonly string[];
  readonly linked_paths?: readonly string[];
  readonly out_dir?: string;
  readonly message?: unknown;
  readonly fresh?: unknown;
}

/**
 * The arguments by which rustc finds the built libraries: one `--extern` for each direct dependency.
 * @param folder what cargo built into, as cargo names it
 */
export function linkArguments(folder: string, buildOutput: string, metadataOutput: string): string[] {
  const messages = cargoMessages(buildOutput);
  const libraries = new Map<string, string>();
  const nativePaths: string[] = [];
  for (const message of messages) {
    if (message.reason === 'build-script-executed') nativePaths.push(...(message.linked_paths ?? []));
    const id = libraryPackage(message);
    // Macros can print lines like those of cargo; files outside the folder of their own set are ignored.
    const isOwn = (file: string) =>
      file.startsWith(`${folder}/`) && posix.normalize(file) === file && /\.(rlib|so)$/.test(file);
    const library = message.filenames?.find(isOwn);
    if (id !== undefined && library !== undefined) libraries.set(id, library);
  }
  const { resolve } = JSON.parse(metadataOutput) as CargoMetadata;
  const direct = resolve.nodes.find(({ id }) => id === resolve.root)?.deps ?? [];
  return [
    '-L',
    `dependency=${folder}/release/deps`,
    // An optional dependency is resolved but not built: it has no library, and the handler cannot name it.
    ...direct.flatMap(({ name, pkg }) =>
      libraries.has(pkg) ? ['--extern', `${name}=${libraries.get(pkg)}`] : [],
    ),
    ...nativePaths.flatMap((path) => ['-L', path]),
  ];
}

/**
 * The hashes in the names of all files that cargo has built, or found: 16 hexadecimal digits. Those of a build script
 * are in the name of its folder.
 */
export function usedHashes(buildOutput: string): ReadonlySet<string> {
  const paths = cargoMessages(buildOutput).flatMap(({ filenames = [], out_dir }) => [
    ...filenames,
    ...(out_dir === undefined ? [] : [out_dir]),
  ]);
  return new Set(
    paths.flatMap((path) => [...path.matchAll(/-([0-9a-f]{16})(?=[./]|$)/g)].map(([, hash = '']) => hash)),
  );
}

/** A package whose library or macro is compiled. */
export interface FinishedPackage {
  readonly id: string;
  /** Since before this run. */
  readonly wasThere: boolean;
}

/** The one that a line of cargo's output reports, if any. */
export function finishedPackage(line: string): FinishedPackage | undefined {
  const message = parseMessage(line);
  const id = message && libraryPackage(message);
  return id === undefined ? undefined : { id, wasThere: message?.fresh === true };
}

function libraryPackage({ reason, package_id, target }: CargoMessage): string | undefined {
  const isLibrary = !target?.kind.some((kind) => kind === 'bin' || kind === 'custom-build');
  return reason === 'compiler-artifact' && target && isLibrary ? package_id : undefined;
}

/** Compiler errors of a dependency if there are any, else what cargo itself said (unknown crate, no network ...). */
export function cargoDiagnostics(build: Pick<ToolResult, 'stdout' | 'stderr'>): Diagnostic[] {
  const compiler = cargoMessages(build.stdout)
    .filter(({ reason }) => reason === 'compiler-message')
    .flatMap(({ message }) => parseRustcOutput(JSON.stringify(message ?? {}), new Set()))
    .filter(({ level }) => level === 'error')
    .slice(0, MAX_DIAGNOSTICS);
  return compiler.length > 0 ? compiler : [plain(build.stderr.trim() || 'cargo ended without saying why')];
}

function cargoMessages(stdout: string): CargoMessage[] {
  return stdout.split('\n').flatMap((line) => parseMessage(line) ?? []);
}

/** Undefined for anything that is not a message: macros print what they like, and output may be truncated. */
function parseMessage(line: string): CargoMessage | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const message = JSON.parse(line) as CargoMessage;
    return isMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function isMessage(message: CargoMessage): boolean {
  const { reason, package_id, target, filenames, linked_paths, out_dir } = message;
  const areTexts = (list: unknown) => Array.isArray(list) && list.every((item) => typeof item === 'string');
  return (
    typeof reason === 'string' &&
    (package_id === undefined || typeof package_id === 'string') &&
    (target === undefined || areTexts(target.kind)) &&
    (out_dir === undefined || typeof out_dir === 'string') &&
    (filenames === undefined || areTexts(filenames)) &&
    (linked_paths === undefined || areTexts(linked_paths))
  );
}
