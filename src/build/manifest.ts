/** The Cargo.toml of a set of dependencies, and the key of the set. */
import { createHash } from 'node:crypto';
import { SDK } from '../model/cargo-dependencies.js';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../model/crates.js';
import { describeProblem } from '../model/problems.js';
import { checkOf } from '../model/schema-check.js';
import { LOCAL_FOLDER, type LocalCrates } from './local-crates.js';

/** Which libraries a handler needs. */
export interface DependencySpec {
  readonly dependencies: Dependencies;
  /** Whether it uses the SDK's async macros. */
  readonly async: boolean;
  readonly lock?: GivenLock | null;
  /** The crates of its own that it depends on, by `path`. */
  readonly local?: LocalCrates;
  /** Whether newer crates are looked for, whatever was resolved before. */
  readonly isFresh?: boolean;
}

/** A Cargo.lock that crates are resolved with. */
export interface GivenLock {
  readonly text: string;
  /** Whether it must have all crates of the manifest; else those are added that it lacks. */
  readonly isStrict: boolean;
}

const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);

/** Version of the layout of a set's folder; part of the key. */
const LAYOUT = 3;

/**
 * The key covers the manifest, its lock, the compiler and the SDK.
 * @param sdk the path at which the compiler finds the SDK: it becomes part of the libraries
 * @param lock what cargo has resolved; none for the SDK alone, which brings its own
 */
export function setKey(fingerprint: string, sdk: string, spec: DependencySpec, lock = ''): string {
  const digest = createHash('sha256')
    .update(`${LAYOUT}\n${fingerprint}\n${manifest(sdk, spec)}\n${lock}`)
    .digest('hex')
    .slice(0, 24);
  if (isSdk(spec)) return `${spec.async ? 'async' : 'sync'}-${digest}`;
  const { local } = spec;
  return local?.digest ? `${digest}-${local.digest.slice(0, 16)}` : digest;
}

/** Whether a set is the SDK with nothing else, which all handlers without dependencies share. */
export function isSdk({ dependencies }: DependencySpec): boolean {
  return Object.keys(dependencies).length === 0;
}

/** The names of the packages that a handler itself asks for. */
export function cratesAskedFor({ dependencies }: DependencySpec): string[] {
  return Object.entries(dependencies).map(([name, dependency]) => asTable(dependency).package ?? name);
}

/**
 * The Cargo.toml of a set.
 * @param sdk the path of the SDK as cargo sees it
 */
export function manifest(sdk: string, { dependencies, async }: DependencySpec): string {
  // Also here: what is in the database is not all that cargo is told as root.
  const problem = checkDependencies(dependencies);
  if (problem) throw new Error(describeProblem('dependencies', problem));
  const { serde, serde_json, ...rest } = dependencies;
  const others = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = [
    `${SDK} = { path = ${JSON.stringify(sdk)}, features = ${JSON.stringify(async ? ['async'] : [])} }`,
    // A handler may select versions and features of these two, but the features that the SDK's prelude needs are kept.
    dependencyLine('serde', preludeCrate(serde, ['derive'])),
    dependencyLine('serde_json', preludeCrate(serde_json, [])),
    // Async handlers usually use tokio; the SDK has it anyway.
    ...(async && !('tokio' in others) ? [dependencyLine('tokio', { version: '1' })] : []),
    ...Object.entries(others).map(([name, dependency]) => dependencyLine(name, asTable(dependency))),
  ];
  return [
    '[package]\nname = "handler"\nversion = "0.0.0"\nedition = "2021"\n',
    // Local crates take it from here.
    `[workspace.dependencies]\n${SDK} = { path = ${JSON.stringify(sdk)} }\n`,
    '[dependencies]',
    ...lines,
    '\n[profile.release]\nopt-level = 3\ndebug = 0\npanic = "unwind"\n',
    // Handlers share the generic code compiled into this crate, which rustc allows at this level only; what runs per
    // request is in the SDK's core, at level 3.
    `[profile.release.package.${SDK}]\nopt-level = "s"\n`,
  ].join('\n');
}

type Dependency = Dependencies[string];
type DependencyTable = Exclude<Dependency, string>;

function asTable(dependency: Dependency | undefined): Partial<DependencyTable> {
  return typeof dependency === 'string' ? { version: dependency } : (dependency ?? {});
}

function preludeCrate(
  requested: Dependency | undefined,
  needed: readonly string[],
): Partial<DependencyTable> {
  const { version = '1', features = [] } = asTable(requested);
  const all = [...new Set([...needed, ...features])];
  return { version, ...(all.length > 0 && { features: all }) };
}

/** All values are validated to texts without controls and quotation marks, for which a JSON value is a TOML value. */
function dependencyLine(name: string, { registry, path, ...table }: Partial<DependencyTable>): string {
  const members = {
    ...table,
    ...(registry !== undefined && { 'registry-index': registry }),
    ...(path !== undefined && { path: path === '.' ? LOCAL_FOLDER : `${LOCAL_FOLDER}/${path}` }),
  };
  const entries = Object.entries(members).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return `${name} = { ${entries.join(', ')} }`;
}
