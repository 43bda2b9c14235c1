/** Reads what cargo prints. Its build scripts and macros are programs of strangers, and can make it print anything. */
import { type Diagnostic, MAX_DIAGNOSTICS, parseRustcOutput, plain } from './diagnostics.js';
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
  for (const { reason, package_id, target, filenames, linked_paths } of messages) {
    if (reason === 'build-script-executed') nativePaths.push(...(linked_paths ?? []));
    if (
      reason !== 'compiler-artifact' ||
      package_id === undefined ||
      !target ||
      target.kind.includes('bin') ||
      target.kind.includes('custom-build')
    )
      continue;
    // Macros can print lines like those of cargo; they get no further than the folder of their own set.
    const library = filenames?.find((file) => file.startsWith(`${folder}/`) && /\.(rlib|so)$/.test(file));
    if (library) libraries.set(package_id, library);
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

/** Compiler errors of a dependency if there are any, else what cargo itself said (unknown crate, no network ...). */
export function cargoDiagnostics(build: Pick<ToolResult, 'stdout' | 'stderr'>): Diagnostic[] {
  const compiler = cargoMessages(build.stdout)
    .filter(({ reason }) => reason === 'compiler-message')
    .flatMap(({ message }) => parseRustcOutput(JSON.stringify(message ?? {}), ''))
    .filter(({ level }) => level === 'error')
    .slice(0, MAX_DIAGNOSTICS);
  return compiler.length > 0 ? compiler : [plain(build.stderr.trim() || 'cargo ended without saying why')];
}

function cargoMessages(stdout: string): CargoMessage[] {
  return stdout.split('\n').flatMap((line) => parseMessage(line) ?? []);
}

/** Undefined for what is no message: macros print what they like, and output may be cut off. */
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
