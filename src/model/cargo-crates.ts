/**
 * The local crates of a handler: those in folders of its project, and the library of its own package. The command line
 * has a copy of this file, which therefore imports nothing of ours but other copies.
 */
import { posix } from 'node:path';
import { crateName, dependenciesOf, type PackageDependency, SDK } from './cargo-dependencies.js';
import {
  CargoProblem,
  isTable,
  MANIFEST,
  type Manifest,
  type Manifests,
  type TomlTable,
  tableIn,
} from './cargo-manifest.js';
import { findFiles, type LookThrough, type ReadSourceFile } from './source-finder.js';

export interface CrateFolder {
  /** A file of the project by its path. */
  readonly read: ReadSourceFile;
  /** Paths of all files in a folder of the project and below it, without what cargo makes and what is hidden. */
  readonly pathsBelow: (folder: string) => readonly string[];
  /** What a file of Rust names. */
  readonly look: LookThrough;
}

export interface LocalCrate {
  readonly name: string;
  /** Its folder in the project: empty, or with `/` at its end. */
  readonly folder: string;
  readonly manifest: Manifest;
  /** Where it is named. */
  readonly place: string;
  /** By their paths in the project. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** What crates are built with. Tests and examples of a local crate are not. */
const BUILT_WITH = ['dependencies', 'build-dependencies'];

/**
 * All crates of the project that a package is built with, with those that they name in turn.
 * @param dependencies those of the package that it uses
 * @throws CargoProblem
 */
export async function localCrates(
  own: Manifest,
  dependencies: readonly PackageDependency[],
  folder: CrateFolder,
  manifests: Manifests,
): Promise<readonly LocalCrate[]> {
  const found = new Map<string, LocalCrate>();
  const follow = async (one: PackageDependency, chain: readonly string[]): Promise<void> => {
    if (one.folder === undefined) return;
    const name = crateName(one);
    if (chain.includes(one.folder))
      throw new CargoProblem(
        `${one.place}.path: crates in a circle: ${[...chain, one.folder].map(shown).join(' -> ')}`,
      );
    if (found.has(one.folder)) return;
    const manifest = await manifests.in(one.folder);
    if (!manifest || !isTable(manifest.table['package']))
      throw new CargoProblem(`${one.place}.path: there is no package in ${shown(one.folder)}`);
    if (packageName(manifest) !== name)
      throw new CargoProblem(`${one.place}.path: ${manifest.path} has ${packageName(manifest)}, not ${name}`);
    const crate = { name, folder: one.folder, manifest, place: `${one.place}.path` };
    found.set(one.folder, { ...crate, files: await filesOf(manifest, folder, manifests) });
    await followAll(manifest, [...chain, one.folder]);
  };
  /** Whatever the target and the features are: cargo wants to see all. */
  const followAll = async (manifest: Manifest, chain: readonly string[]): Promise<void> => {
    const workspace = await manifests.workspace(manifest);
    for (const kind of BUILT_WITH)
      for (const one of dependenciesOf(manifest, workspace, kind, undefined).values()) {
        requireAddress(one);
        await follow(one, chain);
      }
  };
  const library = await libraryOf(own, folder, manifests);
  if (library) await followAll(own, [own.folder]);
  else for (const one of dependencies) await follow(one, [own.folder]);
  if (library) found.set(own.folder, library);
  return [...found.values()];
}

/** Names of registries are of the project; a crate is built without its settings of cargo. */
function requireAddress(dependency: PackageDependency): void {
  const { registry } = dependency.members;
  if (registry === undefined || registry === 'crates-io' || crateName(dependency) === SDK) return;
  throw new CargoProblem(
    `${dependency.place}.registry: in local crates, and in a package with a library, write the address instead of ` +
      `${String(registry)}: registry-index = "sparse+https://..."`,
  );
}

/** The library of the package itself, whose other files are not needed for it. */
async function libraryOf(
  manifest: Manifest,
  { read, look }: CrateFolder,
  manifests: Manifests,
): Promise<LocalCrate | undefined> {
  const { path: given } = tableIn(manifest.table, 'lib');
  const path = posix.join(manifest.folder, typeof given === 'string' ? given : 'src/lib.rs');
  const code = await manifests.text(path);
  if (code === undefined) return undefined;
  const place = `${manifest.path}: the library of the package`;
  const { files: others, problems } = await findFiles(path, code, read, look);
  if (problems.length > 0) throw new CargoProblem(problems.join('\n'));
  const files = new Map(others).set(path, Buffer.from(code));
  for (const [its, content] of await manifestFiles(manifest, manifests)) files.set(its, content);
  const build = tableIn(manifest.table, 'package')['build'];
  const script = posix.join(manifest.folder, typeof build === 'string' ? build : 'build.rs');
  const scriptCode = build === false ? undefined : await manifests.text(script);
  if (scriptCode !== undefined) files.set(script, Buffer.from(scriptCode));
  return { name: packageName(manifest), folder: manifest.folder, manifest, place, files };
}

async function filesOf(
  manifest: Manifest,
  { read, pathsBelow }: CrateFolder,
  manifests: Manifests,
): Promise<ReadonlyMap<string, Buffer>> {
  const paths = pathsBelow(manifest.folder);
  // Packages within it are crates of their own.
  const others = paths
    .filter((path) => path !== manifest.path && path.endsWith(`/${MANIFEST}`))
    .map((path) => path.slice(0, -MANIFEST.length));
  const files = new Map<string, Buffer>();
  for (const path of paths) {
    if (others.some((folder) => path.startsWith(folder))) continue;
    const content = await read(path);
    if (content && 'problem' in content) throw new CargoProblem(`${path} ${content.problem}`);
    if (content) files.set(path, content);
  }
  for (const [path, content] of await manifestFiles(manifest, manifests)) files.set(path, content);
  return files;
}

/** The manifest of a crate, with that of the workspace from which it takes something. */
async function manifestFiles(manifest: Manifest, manifests: Manifests): Promise<ReadonlyMap<string, Buffer>> {
  const root = inherits(manifest.table) ? await manifests.workspace(manifest) : undefined;
  const files = new Map<string, Buffer>();
  for (const path of [manifest.path, ...(root ? [root.path] : [])])
    files.set(path, Buffer.from((await manifests.text(path)) ?? ''));
  return files;
}

/** Whether something in it is taken from a workspace. */
function inherits(table: TomlTable): boolean {
  return Object.entries(table).some(
    ([name, value]) => (name === 'workspace' && value === true) || (isTable(value) && inherits(value)),
  );
}

export function packageName({ table }: Manifest): string {
  return String(tableIn(table, 'package')['name']);
}

function shown(folder: string): string {
  return folder === '' ? 'the folder of the project' : folder.replace(/\/$/, '');
}
