/**
 * Crates among the files of a source, on which its handler depends by `path`. Cargo reads their manifests outside the
 * sandbox, and they are untrusted: each is written anew, with nothing but what a library needs, all inheritance of the
 * workspace resolved, and every dependency checked as one of the handler itself is.
 */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { toError } from '../errors.js';
import { type CrateSurroundings, crateProblem } from '../model/crate-sources.js';
import { DEPENDENCIES_SCHEMA, type Dependencies, SDK_CRATE } from '../model/crates.js';
import { describeProblem } from '../model/problems.js';
import { checkOf } from '../model/schema-check.js';

/** The files of local crates, with their manifests as cargo gets them. */
export interface LocalCrates {
  /** By their paths below the folder of the source. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** sha256 of all of them, in hex; empty without any. */
  readonly digest: string;
}

export const NO_LOCAL_CRATES: LocalCrates = { files: new Map(), digest: '' };

/** A manifest that cannot be built, in a sentence for its author. */
export class LocalCrateError extends Error {
  override readonly name = 'LocalCrateError';
}

/** Where they are in the project of a set. */
export const LOCAL_FOLDER = 'local';

const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);
const MANIFEST = 'Cargo.toml';
/** The members of `[package]` that a library is built by; the rest is for people and registries. */
const PACKAGE_MEMBERS = ['name', 'version', 'edition', 'build', 'rust-version', 'links'];
const DEPENDENCY_TABLES = ['dependencies', 'build-dependencies'] as const;

/**
 * The local crates that a handler depends on, and those on which they depend.
 * @param contents the files of the source but for its entry
 * @param allowed origins of the git repositories and registries that crates may come from
 * @throws LocalCrateError
 */
export function localCrates(
  dependencies: Dependencies,
  contents: ReadonlyMap<string, Buffer>,
  allowed: CrateSurroundings['allowed'],
): LocalCrates {
  const folders = new Set(pathsOf(dependencies).map((path) => posix.normalize(path)));
  if (folders.size === 0) return NO_LOCAL_CRATES;
  return collect(folders, { contents: withOwnManifest(dependencies, contents), allowed });
}

interface Source extends Pick<CrateSurroundings, 'allowed'> {
  readonly contents: ReadonlyMap<string, Buffer>;
}

/**
 * The files of a source, with a manifest of its own crate also where there is none: then that has the crates of the
 * handler.
 */
function withOwnManifest(
  dependencies: Dependencies,
  contents: ReadonlyMap<string, Buffer>,
): ReadonlyMap<string, Buffer> {
  const [name, own] = Object.entries(dependencies).find(([, one]) => pathOf(one) === '.') ?? [];
  if (name === undefined || contents.has(MANIFEST)) return contents;
  const { [name]: _, ...others } = dependencies;
  const { package: called = name } = own as { readonly package?: string };
  const manifest = { package: { name: called, version: '0.0.0', edition: '2021' }, dependencies: others };
  return new Map([...contents, [MANIFEST, Buffer.from(stringify(manifest))]]);
}

function collect(folders: Set<string>, source: Source): LocalCrates {
  const { contents } = source;
  const files = new Map<string, Buffer>();
  // Those that are found meanwhile are visited, too.
  for (const folder of folders) {
    const { text, needs } = manifestOf(folder, source);
    for (const [path, content] of contents) if (isWithin(folder, path)) files.set(path, content);
    files.set(posix.join(folder, MANIFEST), Buffer.from(text));
    for (const needed of needs) folders.add(needed);
  }
  // Those of folders around crates are no manifests of crates.
  for (const path of files.keys())
    if (posix.basename(path) === MANIFEST && !folders.has(posix.dirname(path))) files.delete(path);
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHash('sha256');
  for (const [path, content] of sorted) hash.update(`${path}\0${content.length}\0`).update(content);
  return { files: new Map(sorted), digest: hash.digest('hex') };
}

/** Their crates are looked for when these are collected. */
function withoutPaths(dependencies: Readonly<Record<string, unknown>>): Dependencies {
  const others = Object.entries(dependencies).filter(([, one]) => pathOf(one) === undefined);
  return Object.fromEntries(others) as Dependencies;
}

function pathsOf(dependencies: Readonly<Record<string, unknown>>): string[] {
  return Object.values(dependencies).flatMap((dependency) => pathOf(dependency) ?? []);
}

function pathOf(dependency: unknown): string | undefined {
  const path = isTable(dependency) ? dependency['path'] : undefined;
  return typeof path === 'string' ? path : undefined;
}

/** @returns the manifest as cargo gets it, and the folders of the crates that it needs */
function manifestOf(
  folder: string,
  { contents, allowed }: Source,
): { readonly text: string; readonly needs: readonly string[] } {
  const file = posix.join(folder, MANIFEST);
  const fail = (problem: string): never => {
    throw new LocalCrateError(`${file}: ${problem}`);
  };
  const manifest = read(file, contents) ?? fail('there is no such file: a path must lead to a crate');
  const workspace = workspaceOf(folder, contents);
  const { package: described, lib, features, target } = manifest;
  if (!isTable(described)) return fail('it has no [package]');
  const packageTable: TomlTable = {};
  for (const name of PACKAGE_MEMBERS) {
    const value = inherited(described[name], tableIn(workspace?.table, 'package')?.[name]);
    if (value !== undefined) packageTable[name] = value;
  }
  const needs: string[] = [];
  const dependencyTables = (tables: TomlTable): TomlTable => {
    const written: TomlTable = {};
    for (const name of DEPENDENCY_TABLES) {
      const table = tables[name] ?? tables[name.replace('-', '_')];
      if (!isTable(table)) continue;
      const resolved = resolveAll(table, workspace, { folder, allowed, fail });
      for (const path of pathsOf(resolved)) needs.push(posix.join(folder, path));
      written[name] = resolved;
    }
    return written;
  };
  const targets = Object.entries(isTable(target) ? target : {}).flatMap(([name, tables]) =>
    isTable(tables) ? [[name, dependencyTables(tables)] as const] : [],
  );
  const text = stringify({
    package: { ...packageTable, autobins: false, autoexamples: false, autotests: false, autobenches: false },
    ...(isTable(lib) && { lib }),
    ...(isTable(features) && { features }),
    ...dependencyTables(manifest),
    ...(targets.length > 0 && { target: Object.fromEntries(targets) }),
  });
  return { text, needs };
}

interface Workspace {
  readonly folder: string;
  readonly table: TomlTable;
}

/** The nearest manifest above, or here, that has a workspace. */
function workspaceOf(folder: string, contents: ReadonlyMap<string, Buffer>): Workspace | undefined {
  for (let at = folder; ; at = posix.dirname(at)) {
    const table = read(posix.join(at, MANIFEST), contents)?.['workspace'];
    if (isTable(table)) return { folder: at, table };
    if (at === '.') return undefined;
  }
}

function read(file: string, contents: ReadonlyMap<string, Buffer>): TomlTable | undefined {
  const content = contents.get(file);
  if (content === undefined) return undefined;
  try {
    return parse(content.toString('utf8'));
  } catch (error) {
    throw new LocalCrateError(`${file}: ${toError(error).message}`);
  }
}

/** `value`, or that of the workspace where it says `workspace = true`. */
function inherited(
  value: TomlTable[string] | undefined,
  ofWorkspace: TomlTable[string] | undefined,
): TomlTable[string] | undefined {
  return isTable(value) && value['workspace'] === true ? ofWorkspace : value;
}

interface CrateContext extends Pick<CrateSurroundings, 'allowed'> {
  readonly folder: string;
  readonly fail: (problem: string) => never;
}

/** The dependencies of a table: each resolved, and checked. */
function resolveAll(
  table: TomlTable,
  workspace: Workspace | undefined,
  { folder, allowed, fail }: CrateContext,
): TomlTable {
  const resolved: TomlTable = {};
  for (const [name, value] of Object.entries(table)) {
    const dependency = resolve(name, value, workspace, folder);
    if (dependency === undefined) fail(`the workspace has no dependency ${name}`);
    else resolved[name] = dependency;
  }
  const { [SDK_CRATE]: sdk, ...others } = resolved;
  const asked = fromRoot(others, folder);
  const problem = checkDependencies(asked) ?? crateProblem(withoutPaths(asked), { files: null, allowed });
  if (problem) fail(describeProblem('dependencies', problem));
  return sdk === undefined ? others : { ...others, [SDK_CRATE]: ofThisGateway(sdk) };
}

/** The SDK as the set has it, wherever the author's cargo finds it. */
function ofThisGateway(sdk: TomlTable[string]): TomlTable {
  const features = isTable(sdk) ? listOf(sdk['features']) : [];
  const isOptional = isTable(sdk) && sdk['optional'] === true;
  return {
    workspace: true,
    ...(features.length > 0 && { features }),
    ...(isOptional && { optional: true }),
  };
}

/** Dependencies as the handler itself would name them: with paths from the folder of the source. */
function fromRoot(table: TomlTable, folder: string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(table).map(([name, value]) => {
      if (!isTable(value)) return [name, value];
      const { path, 'registry-index': registry, ...others } = value;
      return [
        name,
        {
          ...others,
          ...(typeof path === 'string' && { path: posix.join(folder, path) }),
          ...(registry !== undefined && { registry }),
        },
      ];
    }),
  );
}

function resolve(
  name: string,
  value: TomlTable[string],
  workspace: Workspace | undefined,
  folder: string,
): TomlTable[string] | undefined {
  if (!isTable(value)) return value;
  const { workspace: isInherited, default_features, ...own } = value;
  if (default_features !== undefined) own['default-features'] = default_features;
  if (isInherited !== true) return own;
  const shared = tableIn(workspace?.table, 'dependencies')?.[name];
  if (shared === undefined || !workspace) return undefined;
  const table: TomlTable = isTable(shared) ? { ...shared } : { version: shared };
  // It is relative to the folder of the workspace.
  if (typeof table['path'] === 'string')
    table['path'] = posix.relative(folder, posix.join(workspace.folder, table['path'])) || '.';
  const features = [...listOf(table['features']), ...listOf(own['features'])];
  return { ...table, ...own, ...(features.length > 0 && { features }) };
}

function listOf(value: TomlTable[string] | undefined): TomlTable[string][] {
  return Array.isArray(value) ? value : [];
}

function tableIn(table: TomlTable | undefined, name: string): TomlTable | undefined {
  const value = table?.[name];
  return isTable(value) ? value : undefined;
}

function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function isWithin(folder: string, path: string): boolean {
  return folder === '.' || path.startsWith(`${folder}/`);
}
