/**
 * The crates of the SDK as a registry has them. They are packed from their sources, without cargo, and the same sources
 * make the same bytes on all machines.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'fflate';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { tarOf } from '../../util/tar.js';

/** A version of a crate, with what the index says of it. */
export interface PackedCrate {
  readonly name: string;
  /** The file in the archive: `NAME-VERSION.crate`. */
  readonly file: string;
  readonly archive: Uint8Array;
  /** Its line of the index: https://doc.rust-lang.org/cargo/reference/registry-index.html */
  readonly entry: string;
}

/** The sources of a crate. */
interface CrateSources {
  readonly manifest: CrateManifest;
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Another one for other sources. */
  readonly digest: string;
}

interface CrateManifest {
  readonly package: { readonly name: string; readonly version: string } & TomlTable;
  readonly features?: Readonly<Record<string, readonly string[]>>;
  readonly dependencies: Readonly<Record<string, string | CrateDependency>>;
}

interface CrateDependency {
  readonly version: string;
  readonly path?: string;
  readonly features?: readonly string[];
  readonly optional?: boolean;
  readonly 'default-features'?: boolean;
}

/** What `scripts/sdk-sources.mjs` makes. */
const SDK = fileURLToPath(new URL('../../../sdk', import.meta.url));
const CORE = 'core';
/** Part of the digests: the next way of packing makes other versions. */
const FORMAT = 1;
const CRATES_IO = 'https://github.com/rust-lang/crates.io-index';
/** What users of a crate do not need of its manifest: tests, and what only the root of a workspace says. */
const PACKAGE_MEMBERS = ['edition', 'description', 'license', 'rust-version'];

/** The sources of the SDK, and its core, which names no crate of its registry, and is the same everywhere. */
let sources: Promise<{ readonly sdk: CrateSources; readonly core: PackedCrate }> | undefined;
/** Cargo asks for several files in a row. */
let last: { readonly index: string; readonly sdk: PackedCrate } | undefined;

/**
 * The crates, for the registry at this address. A manifest names crates of its own registry by the address, and so is
 * another one elsewhere.
 * @param index the address that cargo has, such as `sparse+http://127.0.0.1:8081/crates/`
 */
export async function sdkCrates(index: string): Promise<readonly PackedCrate[]> {
  sources ??= readSources().catch((cause: unknown) => {
    sources = undefined;
    throw new Error('The sources of the SDK cannot be read; `npm run build` makes them', { cause });
  });
  const { sdk, core } = await sources;
  if (last?.index !== index) last = { index, sdk: packed(sdk, index) };
  return [last.sdk, core];
}

async function readSources(): Promise<{ readonly sdk: CrateSources; readonly core: PackedCrate }> {
  const root = parse(await readFile(join(SDK, 'Cargo.toml'), 'utf8'));
  const { 'rust-version': rustVersion } = (root['workspace'] as TomlTable)['package'] as TomlTable;
  const of = async (folder: string, further: readonly string[]): Promise<CrateSources> => {
    const files = new Map<string, Uint8Array>();
    const names = await readdir(join(folder, 'src'), { recursive: true, withFileTypes: true });
    for (const entry of names.filter((one) => one.isFile())) {
      const path = join(entry.parentPath, entry.name);
      files.set(path.slice(folder.length + 1), await readFile(path));
    }
    for (const name of further) files.set(name, await readFile(join(folder, name)));
    const manifest = parse(await readFile(join(folder, 'Cargo.toml'), 'utf8')) as unknown as CrateManifest;
    const own = { ...manifest, package: { ...manifest.package, 'rust-version': rustVersion ?? '' } };
    return { manifest: own, files, digest: digestOf(own, files) };
  };
  return { sdk: await of(SDK, ['README.md']), core: packed(await of(join(SDK, CORE), []), '') };
}

function digestOf(manifest: CrateManifest, files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256').update(`${FORMAT}\0${JSON.stringify(manifest)}\0`);
  for (const [path, content] of [...files].sort(([left], [right]) => (left < right ? -1 : 1)))
    hash.update(`${path}\0${content.length}\0`).update(content);
  return hash.digest('hex');
}

function packed({ manifest, files, digest }: CrateSources, index: string): PackedCrate {
  const { name } = manifest.package;
  const build = createHash('sha256').update(`${digest}\0${index}`).digest('hex').slice(0, 12);
  // Cargo keeps what it has downloaded of a version, and its lock has the checksum: other content is another version.
  const version = `${manifest.package.version}+${build}`;
  const whole = new Map(files).set('Cargo.toml', Buffer.from(packedManifest(manifest, version, index)));
  const archive = gzipSync(tarOf(`${name}-${version}`, whole), { level: 9, mtime: 0 });
  const entry = indexEntry(manifest, version, createHash('sha256').update(archive).digest('hex'));
  return { name, file: `${name}-${version}.crate`, archive, entry: JSON.stringify(entry) };
}

/** Its Cargo.toml as `cargo package` would write it. */
function packedManifest(
  { package: own, features, dependencies }: CrateManifest,
  version: string,
  index: string,
) {
  const members = PACKAGE_MEMBERS.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]]));
  const manifest = {
    package: { name: own.name, version, ...Object.fromEntries(members) },
    features: features ?? {},
    dependencies: Object.fromEntries(
      Object.entries(dependencies).map(([name, dependency]) => {
        if (typeof dependency === 'string' || !isLocal(dependency)) return [name, dependency];
        const { path: _path, ...others } = dependency;
        return [name, { ...others, 'registry-index': index }];
      }),
    ),
  };
  return `# Packed by Edge Gateway.\n${stringify(manifest)}`;
}

function indexEntry(
  { package: own, features = {}, dependencies }: CrateManifest,
  vers: string,
  cksum: string,
) {
  // Cargo before 1.60 would not know these; `v` keeps it from trying.
  const isNew = (values: readonly string[]) => values.some((value) => /^dep:|\?/.test(value));
  const featuresWhere = (condition: (values: readonly string[]) => boolean) =>
    Object.fromEntries(Object.entries(features).filter(([, values]) => condition(values)));
  return {
    ...{ name: own.name, vers, cksum, yanked: false, v: 2 },
    deps: Object.entries(dependencies).map(([name, dependency]) => {
      const table: CrateDependency = typeof dependency === 'string' ? { version: dependency } : dependency;
      return {
        ...{ name, req: table.version.replace(/^(?=\d)/, '^'), kind: 'normal', target: null },
        ...{ features: table.features ?? [], optional: table.optional ?? false },
        default_features: table['default-features'] ?? true,
        registry: isLocal(dependency) ? null : CRATES_IO,
      };
    }),
    features: featuresWhere((values) => !isNew(values)),
    features2: featuresWhere(isNew),
    rust_version: own['rust-version'],
  };
}

/** Whether it is a crate of the SDK, too. */
function isLocal(dependency: string | CrateDependency): boolean {
  return typeof dependency !== 'string' && dependency.path !== undefined;
}
