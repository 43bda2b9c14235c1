/**
 * Crates among the files of a source, on which its handler depends by `path`. Cargo reads their manifests outside the
 * sandbox, and they are untrusted: each is written anew, with nothing but what a library needs, all inheritance of the
 * workspace resolved, and every dependency checked as one of the handler itself is.
 */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { parse, stringify } from 'smol-toml';
import { crateName, dependenciesOf, type PackageDependency, SDK } from '../model/cargo-dependencies.js';
import {
  CargoProblem,
  isTable,
  joinedFolder,
  MANIFEST,
  type Manifest,
  Manifests,
  type TomlTable,
  tableIn,
} from '../model/cargo-manifest.js';
import { type CrateSurroundings, crateProblem } from '../model/crate-sources.js';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../model/crates.js';
import { describeProblem } from '../model/problems.js';
import { checkOf } from '../model/schema-check.js';

/** The files of local crates, with their manifests as cargo gets them. */
export interface LocalCrates {
  /** By their paths below the folder of the source. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** sha256 of all of them, in hex; empty without any. */
  readonly digest: string;
}

/** Where they are in the project of a set. */
export const LOCAL_FOLDER = 'local';

/** A source that may have some. */
interface SourceWithCrates extends Pick<CrateSurroundings, 'allowed'> {
  /** Its files but for its entry, by their paths. */
  readonly contents: ReadonlyMap<string, Buffer>;
  /** The target triple that they are built for. */
  readonly target: string;
}

const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);
/** The members of `[package]` that a library is built by; the rest is for people and registries. */
const PACKAGE_MEMBERS = ['name', 'version', 'edition', 'build', 'rust-version', 'links'];
const DEPENDENCY_TABLES = ['dependencies', 'build-dependencies'];
/** What cargo would look for besides the library. */
const LIBRARY_ALONE = { autobins: false, autoexamples: false, autotests: false, autobenches: false };

/**
 * The local crates that a handler depends on, and those on which they depend.
 * @throws CargoProblem
 */
export async function localCratesOf(
  dependencies: Dependencies,
  source: SourceWithCrates,
): Promise<LocalCrates> {
  const folders = new Set(
    Object.values(dependencies).flatMap((one) =>
      pathOf(one) === undefined ? [] : folderOf(`${pathOf(one)}`),
    ),
  );
  if (folders.size === 0) return { files: new Map(), digest: '' };
  const contents = withOwnManifest(dependencies, source.contents);
  const manifests = new Manifests(async (path) => contents.get(path), parse);
  const files = new Map<string, Buffer>();
  // Those that are found meanwhile are visited, too.
  for (const folder of folders) {
    const { text, needs } = await libraryManifest(folder, manifests, source);
    for (const [path, content] of contents) if (path.startsWith(folder)) files.set(path, content);
    files.set(folder + MANIFEST, Buffer.from(text));
    for (const needed of needs) folders.add(needed);
  }
  // Those of folders around crates are no manifests of crates.
  const isOfNone = (path: string) =>
    posix.basename(path) === MANIFEST && !folders.has(path.slice(0, -MANIFEST.length));
  const sorted = [...files].filter(([path]) => !isOfNone(path)).sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHash('sha256');
  for (const [path, content] of sorted) hash.update(`${path}\0${content.length}\0`).update(content);
  return { files: new Map(sorted), digest: hash.digest('hex') };
}

function pathOf(dependency: Dependencies[string]): string | undefined {
  return typeof dependency === 'string' ? undefined : dependency.path;
}

function folderOf(path: string): string {
  const folder = joinedFolder('', path);
  if (folder === undefined)
    throw new CargoProblem(`dependencies: ${path} is not among the files of the source`);
  return folder;
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

/** @returns the manifest as cargo gets it, and the folders of the crates that it needs */
async function libraryManifest(
  folder: string,
  manifests: Manifests,
  { allowed, target }: SourceWithCrates,
): Promise<{ readonly text: string; readonly needs: readonly string[] }> {
  const manifest = await manifests.in(folder);
  if (!manifest || !isTable(manifest.table['package']))
    throw new CargoProblem(`${folder}${MANIFEST}: there is no package: a path must lead to a crate`);
  const workspace = await manifests.workspace(manifest);
  const needs: string[] = [];
  const tables = DEPENDENCY_TABLES.map((kind) => {
    const all = [...dependenciesOf(manifest, workspace, kind, target).values()];
    const others = all.filter((one) => crateName(one) !== SDK);
    requireAccepted(others, `${manifest.path}: ${kind}`, allowed);
    needs.push(...others.flatMap((one) => one.folder ?? []));
    return [kind, Object.fromEntries(all.map((one) => [one.key, written(one, folder)]))] as const;
  });
  const { lib, features } = manifest.table;
  const text = stringify({
    package: { ...packageMembers(manifest, workspace), ...LIBRARY_ALONE },
    ...(isTable(lib) && { lib }),
    ...(isTable(features) && { features }),
    ...Object.fromEntries(tables.filter(([, table]) => Object.keys(table).length > 0)),
  });
  return { text, needs };
}

function packageMembers({ table }: Manifest, workspace: Manifest | undefined): TomlTable {
  const own = tableIn(table, 'package');
  const shared = tableIn(tableIn(workspace?.table ?? {}, 'workspace'), 'package');
  const members = PACKAGE_MEMBERS.flatMap((name) => {
    const value = own[name];
    const resolved = isTable(value) && value['workspace'] === true ? shared[name] : value;
    return resolved === undefined ? [] : [[name, resolved] as const];
  });
  return Object.fromEntries(members);
}

/** Requires what a handler itself might depend on. @throws CargoProblem */
function requireAccepted(
  dependencies: readonly PackageDependency[],
  place: string,
  allowed: CrateSurroundings['allowed'],
): void {
  const asked = Object.fromEntries(
    dependencies.map((one) => {
      const { 'registry-index': registry, ...members } = membersOf(one);
      const path = one.folder === undefined ? undefined : posix.join('.', one.folder).replace(/\/$/, '');
      return [
        one.key,
        { ...members, ...(registry !== undefined && { registry }), ...(path !== undefined && { path }) },
      ];
    }),
  );
  // Crates of the source are looked for when they are collected.
  const ofOthers = dependencies.filter(({ folder }) => folder === undefined).map(({ key }) => key);
  const elsewhere = Object.fromEntries(ofOthers.map((key) => [key, asked[key]])) as Dependencies;
  const problem = checkDependencies(asked) ?? crateProblem(elsewhere, { files: null, allowed });
  if (problem) throw new CargoProblem(describeProblem(place, problem));
}

/** A dependency as cargo gets it. The SDK is that of the set, wherever the author has it from. */
function written(one: PackageDependency, folder: string): TomlTable {
  const { features, isOptional } = one;
  if (crateName(one) === SDK)
    return {
      workspace: true,
      ...(features.length > 0 && { features }),
      ...(isOptional && { optional: true }),
    };
  const path = one.folder === undefined ? undefined : posix.relative(`/${folder}`, `/${one.folder}`) || '.';
  return { ...membersOf(one), ...(path !== undefined && { path }) };
}

function membersOf({ members, features, isOptional, hasDefaultFeatures }: PackageDependency): TomlTable {
  return {
    ...members,
    ...(features.length > 0 && { features }),
    ...(isOptional && { optional: true }),
    ...(!hasDefaultFeatures && { 'default-features': false }),
  };
}
