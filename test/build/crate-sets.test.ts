/**
 * What sets of crates share, and what they do not: with the real cargo in the sandbox, and crates that are made to try
 * it, in a registry of the test. The SDK is an empty crate, so that a set takes a second.
 */
import { chmod, mkdir, readdir, readFile, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { SharedSetStore } from '../../jobs/worker/shared-set-store.js';
import { DirectoryStore } from '../../src/artifacts/directory-store.js';
import type { CrateCredential } from '../../src/build/crate-credentials.js';
import { DependencySets, type PreparedSet, type SharedSets } from '../../src/build/dependency-sets.js';
import { localCratesOf } from '../../src/build/local-crates.js';
import type { DependencySpec } from '../../src/build/manifest.js';
import { targetOf } from '../../src/build/prepared-sets.js';
import { reachableToolchain } from '../../src/build/reachable-toolchain.js';
import { findToolchain, type Toolchain } from '../../src/build/toolchain.js';
import { toolEnvironment } from '../../src/config.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import type { Database } from '../../src/store/database.js';
import { makePassable } from '../../src/util/untrusted-users.js';
import { type CrateRegistry, startCrateRegistry } from '../support/crate-registry.js';
import { eventually } from '../support/eventually.js';
import { startGitServer } from '../support/git-server.js';
import { createTestLog, type TestLog } from '../support/log.js';
import { useTestStore } from '../support/store.js';
import { type TempDir, tempDir } from '../support/temp.js';

const library = (name: string, more: object = {}) => ({
  ...{ name, version: '1.0.0' },
  files: { 'src/lib.rs': `pub fn name() -> &'static str { "${name}" }` },
  ...more,
});
/** Waits for the library of `two`, and changes it. */
const CHANGES_ANOTHER = `fn main() {
    let deps = format!("{}/release/deps", std::env::var("CARGO_TARGET_DIR").unwrap());
    for _ in 0..600 {
        for entry in std::fs::read_dir(&deps).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if name.starts_with("libtwo") && name.ends_with(".rlib") {
                std::thread::sleep(std::time::Duration::from_millis(300));
                std::fs::write(path, "CHANGED").unwrap();
                return;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("there is no libtwo");
}`;
const LIMIT_MS = 120_000;
const LIMITS = {
  ...{ timeoutMs: LIMIT_MS, memoryMb: 4096, totalMemoryMb: 4096, diskMb: 1024 },
  ...{ fileMb: 256, openFiles: 1024, processes: 256 },
};

describe('sets of crates', function () {
  this.timeout(2 * LIMIT_MS);
  let folder: TempDir;
  let registry: CrateRegistry;
  let toolchain: Toolchain;
  let sandbox: Sandbox;
  let store: Database;
  let logged: TestLog;
  let count = 0;
  useTestStore((opened) => {
    store = opened;
  });

  before(async () => {
    folder = await tempDir('crate-sets');
    logged = createTestLog();
    const crates = ['serde', 'serde_json', 'one', 'two', 'three'].map((name) =>
      library(name, name === 'serde' ? { features: ['derive'] } : {}),
    );
    const evil = library('evil', { files: { 'src/lib.rs': '', 'build.rs': CHANGES_ANOTHER } });
    registry = await startCrateRegistry([...crates, evil], false);
    sandbox = await openSandbox('required', logged.log);
    const sdk = join(folder.path, 'sdk');
    await makePassable(join(folder.path, 'tools'));
    const installed = await reachableToolchain(
      await findToolchain([]),
      sandbox.needsReachablePaths,
      join(folder.path, 'tools'),
      logged.log,
    );
    toolchain = { ...installed, sdk };
    await writeEmptySdk(sdk);
  });
  after(async () => {
    await registry.close();
    await folder.remove();
  });

  interface Machine {
    readonly root?: string;
    readonly shared?: SharedSets;
    readonly signal?: AbortSignal;
    readonly crateSources?: readonly string[];
    readonly credentials?: readonly CrateCredential[];
  }
  /** A worker's sets, in a folder of their own unless given. */
  const machine = ({ root = newRoot(), shared, signal, crateSources = [], credentials = [] }: Machine = {}) =>
    new DependencySets(
      {
        ...{ root, sandbox, limits: LIMITS, crateSources },
        credentials: async () => credentials,
        toolchain,
        env: { ...toolEnvironment(), CARGO_HOME: registry.cargoHome, CARGO_NET_RETRY: '0' },
        ...(signal && { signal }),
      },
      logged.log,
      shared,
    );
  const newRoot = () => join(folder.path, `machine-${++count}`, 'sets');
  const spec = (names: readonly string[], more: Partial<DependencySpec> = {}): DependencySpec => ({
    dependencies: Object.fromEntries(names.map((name) => [name, '1'])),
    async: false,
    ...more,
  });
  const librariesOf = (set: PreparedSet) => {
    if (!set.ok) throw new Error(JSON.stringify(set.diagnostics));
    return set.libraries;
  };
  const libraryOf = async (set: PreparedSet, crate: string) => {
    const deps = join(targetOf(librariesOf(set)), 'release', 'deps');
    const names = (await readdir(deps)).filter((name) => new RegExp(`^lib${crate}-.*\\.rlib$`).test(name));
    expect(names).to.have.length(1);
    return join(deps, `${names[0]}`);
  };
  const builtAt = async (set: PreparedSet, crate: string) =>
    (await stat(await libraryOf(set, crate))).mtimeMs;
  const messageOf = (set: PreparedSet) => (set.ok ? 'it was prepared' : (set.diagnostics[0]?.message ?? ''));

  it('builds only what no other set has, and keeps nothing that it does not use', async () => {
    const sets = machine();
    const first = await sets.prepare(spec(['one', 'two']));
    const second = await sets.prepare(spec(['two', 'three']));
    expect(await builtAt(second, 'two')).to.equal(await builtAt(first, 'two'));
    expect(await builtAt(second, 'three')).to.be.above(await builtAt(first, 'two'));
    const deps = await readdir(join(targetOf(librariesOf(second)), 'release', 'deps'));
    expect(deps.filter((name) => name.includes('one'))).to.deep.equal([]);
  });

  it('takes nothing from a set in which code has run that is not its own', async () => {
    const sets = machine();
    const changed = await sets.prepare(spec(['evil', 'two']));
    expect(await readFile(await libraryOf(changed, 'two'), 'utf8')).to.equal('CHANGED');
    const other = await sets.prepare(spec(['two', 'three']));
    expect(await readFile(await libraryOf(other, 'two'), 'latin1')).to.match(/^!<arch>/);
  });

  it('follows no link that a build has put in the place of a folder, neither when it tidies nor when it copies', async () => {
    const outside = join(folder.path, 'outside-0123456789abcdef');
    await mkdir(outside, { recursive: true });
    await writeFile(join(outside, 'secret-0123456789abcdef'), 'secret');
    // A macro that is expanded when the last build script has run.
    const place = 'format!("{}/release/build", std::env::var("CARGO_TARGET_DIR").unwrap())';
    const swap = `extern crate proc_macro;
#[proc_macro]
pub fn swap(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let build = ${place};
    std::fs::rename(&build, format!("{build}-moved")).unwrap();
    std::os::unix::fs::symlink(${JSON.stringify(outside)}, build).unwrap();
    proc_macro::TokenStream::new()
}`;
    const scripted = { files: { 'src/lib.rs': '', 'build.rs': 'fn main() {}' } };
    registry.publish(library('scripted', scripted));
    registry.publish(
      library('swapping', { macro: true, dependencies: ['scripted'], files: { 'src/lib.rs': swap } }),
    );
    const user = { dependencies: ['swapping', 'scripted'], files: { 'src/lib.rs': 'swapping::swap!();' } };
    registry.publish(library('swapped', user));
    const refused = await machine().prepare(spec(['swapped']));
    expect(messageOf(refused)).to.match(/has replaced folders of the compiled crates/);
    expect(await readdir(outside)).to.deep.equal(['secret-0123456789abcdef']);
    const sets = machine();
    const made = librariesOf(await sets.prepare(spec(['one'])));
    await rename(join(targetOf(made), 'release'), join(targetOf(made), 'moved'));
    await symlink(outside, join(targetOf(made), 'release'));
    const next = librariesOf(await machine({ root: dirname(made.folder) }).prepare(spec(['one', 'two'])));
    expect(await readdir(join(targetOf(next), 'release'))).not.to.include('secret-0123456789abcdef');
  });

  it('takes a set that another worker has built', async () => {
    const artifacts = new DirectoryStore(join(folder.path, 'artifacts'));
    const shared = () =>
      new SharedSetStore({
        ...{ store, artifacts, toolchain: 'f', limits: LIMITS, log: logged.log },
        env: toolEnvironment(),
      });
    const wanted = spec(['one', 'three'], { lock: { text: await lockOf(['one', 'three']), isStrict: true } });
    const first = machine({ shared: shared() });
    const built = await first.prepare(wanted);
    await first.settled();
    const second = machine({ shared: shared() });
    const taken = await second.prepare(wanted);
    expect(await builtAt(taken, 'one')).to.be.closeTo(await builtAt(built, 'one'), 1_000);
    expect(
      logged.lines.filter(({ msg }) => msg === 'took a set of crates that another worker has built'),
    ).to.have.length(1);
    expect(librariesOf(taken).rustcArgs).to.deep.equal(librariesOf(built).rustcArgs);
  });

  /** The lock that cargo makes of these crates now. */
  const lockOf = async (names: readonly string[]) =>
    librariesOf(await machine().prepare(spec(names, { isFresh: true }))).lock;

  it('builds the same crates with their lock after the registry has newer ones, and looks for these when it is asked to', async () => {
    registry.publish(library('moving', { version: '1.0.0' }));
    const sets = machine();
    const first = librariesOf(await sets.prepare(spec(['moving'])));
    expect(first.lock).to.match(/name = "moving"\nversion = "1\.0\.0"/);
    registry.publish(library('moving', { version: '1.1.0' }));
    // Another machine, which has resolved nothing yet.
    const lock = { text: first.lock, isStrict: false };
    const again = librariesOf(await machine().prepare(spec(['moving'], { lock })));
    expect(again.lock).to.equal(first.lock);
    expect(librariesOf(await sets.prepare(spec(['moving']))).lock).to.equal(first.lock);
    const fresh = librariesOf(await sets.prepare(spec(['moving'], { isFresh: true })));
    expect(fresh.lock).to.match(/name = "moving"\nversion = "1\.1\.0"/);
    expect(librariesOf(await sets.prepare(spec(['moving']))).lock).to.equal(fresh.lock);
    // A lock may have what was yanked since; nothing else may.
    registry.yank('moving', '1.0.0');
    registry.yank('moving', '1.1.0');
    expect((await machine().prepare(spec(['moving'], { lock }))).ok).to.equal(true);
    expect(messageOf(await machine().prepare(spec(['moving'])))).to.match(/moving.*yanked/s);
  });

  it('refuses a lock that lacks a crate, and names it', async () => {
    const text = await lockOf(['one']);
    const misfit = spec(['one', 'three'], { lock: { text, isStrict: true } });
    expect(messageOf(await machine().prepare(misfit))).to.match(
      /^The lock does not fit the dependencies: it has no three 1\.0\.0/,
    );
    expect(messageOf(await machine().prepare(spec(['missing'])))).to.match(/missing/);
  });

  it('has crates of a git repository and of another registry, where the operator allows their hosts', async () => {
    const manifest = '[package]\nname = "gitty"\nversion = "0.3.0"\nedition = "2021"\n';
    const git = await startGitServer({ 'Cargo.toml': manifest, 'src/lib.rs': '' });
    const other = await startCrateRegistry([library('private')], false);
    try {
      const gitty = { git: git.url, rev: git.revision };
      const wanted = spec([], {
        dependencies: { gitty, private: { version: '1', registry: `sparse+${other.origin}/` } },
      });
      const allowed = [git.origin, other.origin];
      const built = await machine({ crateSources: allowed }).prepare(wanted);
      await libraryOf(built, 'gitty');
      await libraryOf(built, 'private');
      const refused = await machine({ crateSources: [git.origin] }).prepare(wanted);
      expect(messageOf(refused)).to.equal(
        `The crate private is of ${other.origin}/, which the operator does not allow (CARGO_SOURCES).`,
      );
      const gone = spec([], { dependencies: { gitty: { ...gitty, rev: '0'.repeat(40) } } });
      expect(messageOf(await machine({ crateSources: allowed }).prepare(gone))).to.match(/0{40}/);
    } finally {
      await git.close();
      await other.close();
    }
  });

  it('lets cargo in with secrets, which neither builds nor messages have', async () => {
    const secret = 'a-secret-of-the-installation';
    const tells = `fn main() { for (name, value) in std::env::vars() { println!("cargo:warning={name}={value}") } panic!("told") }`;
    const manifest = '[package]\nname = "gitty"\nversion = "0.3.0"\nedition = "2021"\n';
    const git = await startGitServer({ 'Cargo.toml': manifest, 'src/lib.rs': '' }, `git:${secret}`);
    const telling = library('telling', { files: { 'src/lib.rs': '', 'build.rs': tells } });
    const other = await startCrateRegistry([library('private'), telling], false, secret);
    try {
      const index = `sparse+${other.origin}/`;
      const gitty = { git: git.url, rev: git.revision };
      const wanted = (name: string) =>
        spec([], { dependencies: { gitty, [name]: { version: '1', registry: index } } });
      const crateSources = [git.origin, other.origin];
      const credentials = [git.origin, index].map((place) => ({ place, secret }));
      const built = await machine({ crateSources, credentials }).prepare(await wanted('private'));
      await libraryOf(built, 'gitty');
      await libraryOf(built, 'private');
      for (const [name, known] of [
        ['telling', credentials],
        ['private', []],
        ['private', credentials.map(({ place }) => ({ place, secret: 'another' }))],
      ] as const) {
        const failed = await machine({ crateSources, credentials: known }).prepare(wanted(name));
        expect(failed.ok).to.equal(false);
        const said = JSON.stringify(failed);
        expect(said).not.to.include(secret).and.not.to.include('another');
        expect(said).to.match(name === 'telling' ? /told/ : /A host of crates does not let the gateway in/);
        expect(said).not.to.include(registry.cargoHome);
      }
    } finally {
      await git.close();
      await other.close();
    }
  });

  it('has crates of the source itself, and those that these need', async () => {
    const crate = (name: string, text: string) =>
      `[package]\nname = "${name}"\nversion = "0.1.0"\nedition = "2021"\n${text}`;
    const contents = (text: string) =>
      new Map(
        Object.entries({
          'crates/a/Cargo.toml': crate('a', '[dependencies]\none = "1"\nb = { path = "../b" }'),
          'crates/a/src/lib.rs': 'pub use b::text;',
          'crates/b/Cargo.toml': crate('b', ''),
          'crates/b/src/lib.rs': `pub fn text() -> &'static str { "${text}" }`,
        }).map(([path, content]) => [path, Buffer.from(content)]),
      );
    const dependencies = { a: { path: 'crates/a' } };
    const root = newRoot();
    const sets = machine({ root });
    const localOf = (contents: ReadonlyMap<string, Buffer>) =>
      localCratesOf(dependencies, { contents, allowed: [], target: toolchain.host });
    const wanted = async (text: string) => ({
      ...spec([]),
      ...{ dependencies, local: await localOf(contents(text)) },
    });
    const first = await sets.prepare(await wanted('first'));
    expect(librariesOf(first).rustcArgs.join(' ')).to.match(/--extern a=/);
    const second = await sets.prepare(await wanted('second'));
    expect(await readFile(await libraryOf(second, 'b'), 'latin1')).to.include('second');
    expect(await builtAt(second, 'one')).to.equal(await builtAt(first, 'one'));
    const cycle = new Map([
      ...contents(''),
      ['crates/b/Cargo.toml', Buffer.from(crate('b', '[dependencies]\na = { path = "../a" }'))] as const,
    ]);
    const turning = { ...(await wanted('')), local: await localOf(cycle) };
    expect(messageOf(await sets.prepare(turning))).to.match(/cyclic package dependency/);
    // Few are kept of those that differ in them only.
    for (const text of ['third', 'fourth']) await sets.prepare(await wanted(text));
    const long = new Date(Date.now() - 3600_000);
    for (const name of await readdir(root)) await utimes(join(root, name, 'rustc-args.json'), long, long);
    await sets.prepare(await wanted('last'));
    expect(await readdir(root)).to.have.length(4);
  });

  it('loses the crate at most that it was at when it is stopped', async () => {
    const waits =
      'fn main() { if std::env::var("OUT_DIR").is_ok() { std::thread::sleep(std::time::Duration::from_secs(5)) } }';
    registry.publish(
      library('slow', { dependencies: ['two'], files: { 'src/lib.rs': '', 'build.rs': waits } }),
    );
    const [root, stop] = [newRoot(), new AbortController()];
    const stopped = machine({ root, signal: stop.signal });
    const preparing = stopped.prepare(spec(['two', 'slow']), '', { id: 'b', endpoint: 'hello' });
    let unfinished = '';
    await eventually(async () => {
      const [set] = stopped.building();
      expect(set).to.deep.include({ of: 5, builds: [{ id: 'b', endpoint: 'hello' }] });
      expect(set?.crate).to.equal('slow');
      expect(set?.crates).to.equal(4);
      const [name = ''] = (await readdir(root)).filter((name) => name.startsWith('.making-'));
      unfinished = join(root, name);
      expect(await two(join(unfinished, 'target'))).to.be.above(0);
    }, LIMIT_MS);
    const before = await two(join(unfinished, 'target'));
    stop.abort();
    expect((await preparing).ok).to.equal(false);
    const done = await machine({ root }).prepare(spec(['two', 'slow']));
    expect(await two(targetOf(librariesOf(done)))).to.equal(before);
  });

  /** When its library was built. */
  const two = async (target: string) => {
    const deps = join(target, 'release', 'deps');
    const name = (await readdir(deps)).find((name) => /^libtwo-.*\.rlib$/.test(name));
    return name === undefined ? 0 : (await stat(join(deps, name))).mtimeMs;
  };
});

async function writeEmptySdk(sdk: string): Promise<void> {
  await mkdir(join(sdk, 'src'), { recursive: true });
  const manifest = '[package]\nname = "rust-edge-gateway-sdk"\nversion = "0.1.0"\n[features]\nasync = []\n';
  await writeFile(join(sdk, 'Cargo.toml'), manifest);
  await writeFile(join(sdk, 'Cargo.lock'), 'version = 4\n');
  await writeFile(join(sdk, 'src', 'lib.rs'), '');
  for (const path of ['', 'src']) await chmod(join(sdk, path), 0o755);
  for (const file of ['Cargo.toml', 'Cargo.lock', 'src/lib.rs']) await chmod(join(sdk, file), 0o644);
}
