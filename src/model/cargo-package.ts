/**
 * What cargo knows of a handler: the crates, the edition and the lock of the package that its file is in, as the API
 * takes them. The command line has a copy of this file, which therefore imports nothing of ours but other copies.
 */
import { type CrateFolder, type LocalCrate, localCrates } from './cargo-crates.js';
import {
  crateName,
  dependenciesOf,
  type PackageDependency,
  SDK,
  withDefaultFeatures,
} from './cargo-dependencies.js';
import {
  CargoProblem,
  isTable,
  type Manifest,
  Manifests,
  type ParseToml,
  tableIn,
} from './cargo-manifest.js';

/** Reads the files of a project. */
export interface CargoProject extends CrateFolder {
  readonly parseToml: ParseToml;
  /** The target triple of handlers: asked for where a manifest has tables for targets. */
  readonly target: () => Promise<string>;
}

/** A dependency as the API takes it. */
export interface SentDependency {
  readonly version?: string;
  readonly package?: string;
  readonly git?: string;
  readonly rev?: string;
  readonly registry?: string;
  /** A folder of the source; `.` is all of it. */
  readonly path?: string;
  readonly features?: readonly string[];
  readonly 'default-features'?: boolean;
}

export interface HandlerPackage {
  readonly dependencies: Readonly<Record<string, string | SentDependency>>;
  readonly edition: string;
  /** The path of its Cargo.lock in the project; null: there is none, or there are no crates. */
  readonly lock: string | null;
  /** The files of its local crates, by their paths in the source. */
  readonly files: ReadonlyMap<string, Buffer>;
}

export interface FoundPackage {
  /** Undefined: the handler is in no package, or something is wrong. */
  readonly found: HandlerPackage | undefined;
  readonly problems: readonly string[];
  /** Paths in the project that were read, or looked for. */
  readonly paths: ReadonlySet<string>;
}

const EDITIONS = ['2021', '2024'];
const LOCK = 'Cargo.lock';
const REVISION = /^[0-9a-f]{40}$/;

/** A handler, as cargo is asked about it. */
export interface PackagedHandler {
  /** The path of its file in the project. */
  readonly path: string;
  /** The folder that paths of its source are relative to: empty, or with `/` at its end. */
  readonly within: string;
  /** Whether it uses the async macros of the SDK. */
  readonly isAsync: boolean;
}

/**
 * Whether one of the files of a handler uses an async macro, which needs the SDK with tokio. A mention in a comment is
 * harmless: it only links more than needed.
 */
export function usesAsync(files: Iterable<string | Buffer>): boolean {
  for (const file of files)
    if (/\bhandler_(loop(_async|_async_result|_result_async)|ws_async)\s*!/.test(file.toString()))
      return true;
  return false;
}

/** The package of a handler: that of the nearest Cargo.toml above it in the project. */
export async function packageOf(handler: PackagedHandler, project: CargoProject): Promise<FoundPackage> {
  const manifests = new Manifests(project.read, project.parseToml);
  const { paths } = manifests;
  try {
    const manifest = await manifests.package(handler.path.slice(0, handler.path.lastIndexOf('/') + 1));
    const found = manifest && (await handlerPackage(manifest, handler, project, manifests));
    return { found, problems: [], paths };
  } catch (thrown) {
    if (!(thrown instanceof CargoProblem)) throw thrown;
    return { found: undefined, problems: [thrown.message], paths };
  }
}

async function handlerPackage(
  manifest: Manifest,
  { within, isAsync }: PackagedHandler,
  project: CargoProject,
  manifests: Manifests,
): Promise<HandlerPackage> {
  const workspace = await manifests.workspace(manifest);
  requireUnpatched(workspace ?? manifest);
  const edition = editionOf(manifest, workspace);
  const hasTargets = Object.keys(tableIn(manifest.table, 'target')).length > 0;
  const target = hasTargets ? await project.target() : undefined;
  const all = dependenciesOf(manifest, workspace, 'dependencies', target);
  const used = withDefaultFeatures(manifest, all).filter((one) => !isSdk(one));
  const crates = await localCrates(manifest, used, project, manifests);
  const sent = new Map<string, string | SentDependency>();
  for (const one of used) {
    const dependency = await sentDependency(one, within, manifest.folder, manifests);
    if (!isOfEvery(one.key, dependency, isAsync)) sent.set(one.key, dependency);
  }
  const own = crates.find(({ manifest: its }) => its.path === manifest.path);
  if (own) sent.set(own.name, { path: pathIn(within, own, `${manifest.path}: the library of the package`) });
  const files = new Map<string, Buffer>();
  for (const crate of crates) {
    pathIn(within, crate, crate.place);
    for (const [path, content] of crate.files) {
      if (!path.startsWith(within))
        throw new CargoProblem(
          `${crate.manifest.path}: ${path}, that of its workspace, ${outsideOf(within)}`,
        );
      files.set(path.slice(within.length), content);
    }
  }
  for (const path of crates.flatMap((crate) => [...crate.files.keys()])) manifests.paths.add(path);
  const inOrder = [...sent].sort(([left], [right]) => (left < right ? -1 : 1));
  const dependencies = Object.fromEntries(inOrder);
  // Without crates of its own, a handler is compiled with those that the gateway has built already.
  const lock = `${(workspace ?? manifest).folder}${LOCK}`;
  const isLocked = sent.size > 0 && (await manifests.text(lock)) !== undefined;
  return { dependencies, edition, lock: isLocked ? lock : null, files };
}

function requireUnpatched({ table, path }: Manifest): void {
  const name = ['patch', 'replace'].find((one) => Object.hasOwn(table, one));
  if (name !== undefined)
    throw new CargoProblem(
      `${path}: ${name}: the gateway builds crates as they are named; name the other crate in the dependencies, ` +
        'with git and rev, or with a path in the project',
    );
}

/** Whether it is a crate that each handler has, as it has it. */
function isOfEvery(key: string, dependency: string | SentDependency, isAsync: boolean): boolean {
  const {
    version,
    features = [],
    ...others
  } = typeof dependency === 'string' ? { version: dependency } : dependency;
  if (version !== '1' || Object.keys(others).length > 0) return false;
  if (key === 'serde') return features.every((one) => one === 'derive');
  return (key === 'serde_json' || (key === 'tokio' && isAsync)) && features.length === 0;
}

/** Cargo's own default is an edition that is too old. */
function editionOf({ table, path }: Manifest, workspace: Manifest | undefined): string {
  const own = tableIn(table, 'package')['edition'];
  const shared = tableIn(tableIn(workspace?.table ?? {}, 'workspace'), 'package')['edition'];
  const edition = isTable(own) && own['workspace'] === true ? shared : own;
  if (typeof edition === 'string' && EDITIONS.includes(edition)) return edition;
  const what = edition === undefined ? 'is missing, which means 2015' : `is ${String(edition)}`;
  throw new CargoProblem(
    `${path}: package.edition ${what}; handlers are compiled with ${EDITIONS.join(' or ')}`,
  );
}

function isSdk(dependency: PackageDependency): boolean {
  if (crateName(dependency) !== SDK) return false;
  if (dependency.key.replaceAll('-', '_') === SDK.replaceAll('-', '_')) return true;
  throw new CargoProblem(`${dependency.place} renames the SDK: handlers know it as ${SDK}`);
}

/** @param folder of the package, from which registries are looked for */
async function sentDependency(
  dependency: PackageDependency,
  within: string,
  folder: string,
  manifests: Manifests,
): Promise<string | SentDependency> {
  const { members, features, hasDefaultFeatures, place, folder: own } = dependency;
  const text = (name: string): string | undefined => {
    const value = members[name];
    if (value === undefined || typeof value === 'string') return value;
    throw new CargoProblem(`${place}.${name} must be a text`);
  };
  const [version, renamed, git, rev] = [text('version'), text('package'), text('git'), text('rev')];
  const registry = await registryOf(text('registry'), text('registry-index'), place, folder, manifests);
  if (git !== undefined && (rev === undefined || !REVISION.test(rev)))
    throw new CargoProblem(
      `${place}: git needs rev with all 40 digits of a commit, in lower case; a branch, a tag or a short revision ` +
        'may be another one tomorrow',
    );
  if (version === undefined && git === undefined && own === undefined)
    throw new CargoProblem(`${place} needs a version, a path in the project, or git with rev`);
  const isLocal = own !== undefined;
  const sent: SentDependency = {
    ...(version !== undefined && !isLocal && { version }),
    ...(renamed !== undefined && { package: renamed }),
    ...(git !== undefined && rev !== undefined && { git, rev }),
    ...(registry !== undefined && !isLocal && { registry }),
    ...(isLocal && { path: pathIn(within, { folder: own }, `${place}.path`) }),
    ...(features.length > 0 && { features }),
    ...(!hasDefaultFeatures && { 'default-features': false }),
  };
  const isPlain = version !== undefined && Object.keys(sent).length === 1;
  return isPlain && !isLocal ? version : sent;
}

async function registryOf(
  name: string | undefined,
  index: string | undefined,
  place: string,
  folder: string,
  manifests: Manifests,
): Promise<string | undefined> {
  if (name === undefined || name === 'crates-io') return index;
  const found = await manifests.registry(name, folder);
  if (found !== undefined) return found;
  throw new CargoProblem(`${place}.registry: no .cargo/config.toml of the project has the index of ${name}`);
}

/** The path of a crate in a source. */
function pathIn(within: string, { folder }: Pick<LocalCrate, 'folder'>, place: string): string {
  if (folder.startsWith(within)) return folder.slice(within.length).replace(/\/$/, '') || '.';
  throw new CargoProblem(`${place} ${outsideOf(within)}`);
}

function outsideOf(within: string): string {
  return `is outside of the root ${within.replace(/\/$/, '')} of the source`;
}
