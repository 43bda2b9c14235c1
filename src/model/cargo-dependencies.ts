/**
 * The dependencies of a package for one target, as its Cargo.toml and that of its workspace say them together:
 * https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
 * The command line has a copy of this file, which therefore imports nothing of ours but other copies.
 */
import { isForTarget } from './cargo-cfg.js';
import {
  CargoProblem,
  isTable,
  joinedFolder,
  type Manifest,
  type TomlTable,
  tableIn,
} from './cargo-manifest.js';

/** A dependency, with what its workspace says of it. */
export interface PackageDependency {
  /** Its name in the package. */
  readonly key: string;
  /** Where it stands: `Cargo.toml: dependencies.x`. */
  readonly place: string;
  /** Its members as in a Cargo.toml, but for `features`, `optional`, `default-features` and `path`. */
  readonly members: TomlTable;
  readonly features: readonly string[];
  readonly isOptional: boolean;
  readonly hasDefaultFeatures: boolean;
  /** The folder of the project that it is in; undefined: it is not of the project. */
  readonly folder: string | undefined;
}

/** The name of the crate, whatever the package calls it. */
export function crateName({ key, members }: PackageDependency): string {
  return typeof members['package'] === 'string' ? members['package'] : key;
}

/** The gateway compiles handlers with its own, wherever their authors have it from. */
export const SDK = 'rust-edge-gateway-sdk';

/** What a dependency may say. What only nightly knows, such as `artifact`, changes what is built. */
const MEMBERS = new Set([
  ...['version', 'registry', 'registry-index', 'path', 'git', 'branch', 'tag', 'rev', 'features', 'optional'],
  ...['default-features', 'default_features', 'package', 'workspace', 'public'],
]);

/**
 * @param kind such as `dependencies`
 * @param target undefined: for all targets
 * @throws CargoProblem
 */
export function dependenciesOf(
  manifest: Manifest,
  workspace: Manifest | undefined,
  kind: string,
  target: string | undefined,
): ReadonlyMap<string, PackageDependency> {
  const found = new Map<string, PackageDependency>();
  for (const [place, table] of tablesOf(manifest, kind, target))
    for (const [key, value] of Object.entries(table)) {
      const one = dependencyOf(manifest, workspace, key, value, `${manifest.path}: ${place}.${key}`);
      const other = found.get(key);
      found.set(key, other ? merged(other, one) : one);
    }
  return found;
}

function tablesOf(
  { path, table }: Manifest,
  kind: string,
  target: string | undefined,
): readonly (readonly [place: string, table: TomlTable])[] {
  const conditional = Object.entries(tableIn(table, 'target')).flatMap(([condition, tables]) => {
    const place = `target.'${condition}'`;
    const isMeant = target === undefined || isForTarget(condition, target);
    if (typeof isMeant === 'object') throw new CargoProblem(`${path}: ${place} ${isMeant.problem}`);
    return isMeant && isTable(tables) ? [[`${place}.${kind}`, tableIn(tables, kind)] as const] : [];
  });
  return [[kind, tableIn(table, kind)], ...conditional];
}

function dependencyOf(
  manifest: Manifest,
  workspace: Manifest | undefined,
  key: string,
  value: unknown,
  place: string,
): PackageDependency {
  const own = asTable(value, place);
  if (own['workspace'] === undefined) return plainDependency(manifest, key, own, place);
  const shared = tableIn(workspace ? tableIn(workspace.table, 'workspace') : {}, 'dependencies');
  if (own['workspace'] !== true || !workspace || !Object.hasOwn(shared, key))
    throw new CargoProblem(
      `${place}: workspace: ${workspace ? `${workspace.path} has no workspace.dependencies.${key}` : 'the package is in no workspace of the project'}`,
    );
  const base = plainDependency(
    workspace,
    key,
    asTable(shared[key], `${workspace.path}: workspace.dependencies.${key}`),
    place,
  );
  // Cargo lets a member switch default features on, and not off.
  const wants = defaultFeaturesOf(own, place);
  return {
    ...base,
    features: [...new Set([...base.features, ...featuresOf(own, place)])],
    isOptional: own['optional'] === true,
    hasDefaultFeatures: base.hasDefaultFeatures || wants === true,
  };
}

function plainDependency(
  { folder }: Manifest,
  key: string,
  table: TomlTable,
  place: string,
): PackageDependency {
  const {
    features: _features,
    optional,
    path,
    'default-features': _new,
    default_features: _old,
    ...members
  } = table;
  if (path !== undefined && typeof path !== 'string') throw new CargoProblem(`${place}.path must be a text`);
  const isOfProject = path !== undefined && (members['package'] ?? key) !== SDK;
  const its = isOfProject ? joinedFolder(folder, path) : undefined;
  if (isOfProject && its === undefined)
    throw new CargoProblem(
      `${place}.path: ${path} is outside of the folder of the project, which alone is sent; ` +
        'move the crate into it, or name it with git and rev',
    );
  return {
    ...{ key, place, members, folder: its },
    features: featuresOf(table, place),
    isOptional: optional === true,
    hasDefaultFeatures: defaultFeaturesOf(table, place) ?? true,
  };
}

function asTable(value: unknown, place: string): TomlTable {
  if (typeof value === 'string') return { version: value };
  if (!isTable(value)) throw new CargoProblem(`${place} must be a version or a table`);
  const unknown = Object.keys(value).find((name) => !MEMBERS.has(name));
  if (unknown !== undefined) throw new CargoProblem(`${place}.${unknown} is not accepted for handlers`);
  return value;
}

function featuresOf({ features = [] }: TomlTable, place: string): readonly string[] {
  if (Array.isArray(features) && features.every((one) => typeof one === 'string')) return features;
  throw new CargoProblem(`${place}.features must be a list of texts`);
}

/** Both spellings count; the one with the hyphen more. */
function defaultFeaturesOf(table: TomlTable, place: string): boolean | undefined {
  const value = table['default-features'] ?? table['default_features'];
  if (value === undefined || typeof value === 'boolean') return value;
  throw new CargoProblem(`${place}.default-features must be true or false`);
}

/** One that several tables name. */
function merged(one: PackageDependency, other: PackageDependency): PackageDependency {
  const isSame = JSON.stringify([one.members, one.folder]) === JSON.stringify([other.members, other.folder]);
  if (!isSame) throw new CargoProblem(`${other.place} differs from ${one.place}: a crate is built once`);
  return {
    ...one,
    features: [...new Set([...one.features, ...other.features])],
    isOptional: one.isOptional && other.isOptional,
    hasDefaultFeatures: one.hasDefaultFeatures || other.hasDefaultFeatures,
  };
}

/**
 * The dependencies that the default features of a package switch on, with the features that these add:
 * https://doc.rust-lang.org/cargo/reference/features.html
 */
export function withDefaultFeatures(
  { table }: Manifest,
  dependencies: ReadonlyMap<string, PackageDependency>,
): PackageDependency[] {
  const features = tableIn(table, 'features');
  const on = new Set<string>();
  const added = new Map<string, Set<string>>();
  const seen = new Set<string>();
  const add = (key: string, feature: string) => {
    const its = added.get(key) ?? new Set();
    added.set(key, its.add(feature));
  };
  const enable = (value: string) => {
    if (seen.has(value)) return;
    seen.add(value);
    if (value.startsWith('dep:')) {
      on.add(value.slice('dep:'.length));
      return;
    }
    const [, name = '', isWeak, feature = ''] = /^([^/?]+)(\?)?\/(.+)$/.exec(value) ?? [];
    if (feature !== '') {
      add(name, feature);
      if (isWeak !== undefined) return;
      on.add(name);
      if (Object.hasOwn(features, name)) enable(name);
      return;
    }
    const values = Object.hasOwn(features, value) ? features[value] : undefined;
    // An optional dependency is a feature of the same name.
    if (!Array.isArray(values)) on.add(value);
    else for (const one of values) enable(String(one));
  };
  if (Object.hasOwn(features, 'default')) enable('default');
  return [...dependencies.values()]
    .filter(({ key, isOptional }) => !isOptional || on.has(key))
    .map((one) => ({ ...one, features: [...new Set([...one.features, ...(added.get(one.key) ?? [])])] }));
}
