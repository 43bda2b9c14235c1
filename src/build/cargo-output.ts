/** Parses the output of cargo. Build scripts and macros are untrusted code that can make it print anything. */
import type { Diagnostic } from '../model/diagnostic.js';
import { MAX_DIAGNOSTICS, parseRustcOutput, plain } from './diagnostics.js';
import type { ToolResult } from './run-tool.js';

interface CargoMessage {
  readonly reason: string;
  readonly package_id?: string;
  readonly target?: { readonly kind: readonly string[]; readonly name: string };
  readonly filenames?: readonly string[];
  readonly linked_paths?: readonly string[];
  readonly message?: unknown;
}

interface CargoMetadata {
  readonly resolve: {
    readonly root: string;
    readonly nodes: readonly {
      readonly id: string;
      readonly deps: readonly { readonly name: string; readonly pkg: string }[];
    }[];
  };
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
    const isOwn = (file: string) => file.startsWith(`${folder}/`) && /\.(rlib|so)$/.test(file);
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

/** The number of packages to build, without the root package. */
export function packageCount(metadataOutput: string): number {
  return (JSON.parse(metadataOutput) as CargoMetadata).resolve.nodes.length - 1;
}

/** The package whose library or macro was compiled, if a line of cargo's output reports one. */
export function compiledPackage(line: string): string | undefined {
  const message = parseMessage(line);
  return message && libraryPackage(message);
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

function isMessage({ reason, package_id, target, filenames, linked_paths }: CargoMessage): boolean {
  const areTexts = (list: unknown) => Array.isArray(list) && list.every((item) => typeof item === 'string');
  return (
    typeof reason === 'string' &&
    (package_id === undefined || typeof package_id === 'string') &&
    (target === undefined || areTexts(target.kind)) &&
    (filenames === undefined || areTexts(filenames)) &&
    (linked_paths === undefined || areTexts(linked_paths))
  );
}
