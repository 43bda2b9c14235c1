/** What is read of Cargo.toml, compared with what cargo itself says of the same folders. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { parse } from 'smol-toml';
import { type CargoProject, type FoundPackage, packageOf } from '../../src/model/cargo-package.js';
import { fileReferences } from '../../src/model/rust-references.js';
import { type TempDir, tempDir } from '../support/temp.js';

type Files = Readonly<Record<string, string>>;

const TARGET = 'x86_64-unknown-linux-gnu';
const PACKAGE = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n';
const HANDLER = { 'src/main.rs': 'fn main() {}\n' };
const REV = '0123456789abcdef0123456789abcdef01234567';

function projectOf(files: Files): CargoProject {
  return {
    read: async (path) => (files[path] === undefined ? undefined : Buffer.from(files[path])),
    pathsBelow: (folder) => Object.keys(files).filter((path) => path.startsWith(folder)),
    parseToml: parse,
    look: (_, code) => fileReferences(code),
    target: async () => TARGET,
  };
}

const found = (files: Files, path = 'src/main.rs', within = ''): Promise<FoundPackage> =>
  packageOf({ path, within, isAsync: false }, projectOf(files));

async function dependencies(files: Files, path?: string): Promise<unknown> {
  const { found: its, problems } = await found(files, path);
  expect(problems).to.deep.equal([]);
  return its?.dependencies;
}

/** A library in a folder of the project, with features that do nothing. */
const crate = (folder: string, features: readonly string[] = [], more = ''): Files => ({
  [`${folder}/Cargo.toml`]: `[package]\nname = "${folder.split('/').at(-1)}"\nversion = "0.1.0"\nedition = "2021"\n[features]\n${features.map((name) => `${name} = []\n`).join('')}${more}`,
  [`${folder}/src/lib.rs`]: '',
});

describe('the package of a handler', () => {
  let folder: TempDir;
  let made = 0;
  before(async () => {
    folder = await tempDir('cargo-package');
  });
  after(() => folder.remove());

  async function onDisk(files: Files): Promise<string> {
    const root = join(folder.path, `p${made++}`);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    return root;
  }

  /** The dependencies of the package, as cargo has read them: those of all targets, and optional ones. */
  async function cargoDependencies(files: Files, at = ''): Promise<unknown> {
    const root = await onDisk(files);
    const args = ['metadata', '--no-deps', '--offline', '--format-version', '1'];
    const { stdout } = await execa('cargo', args, { cwd: join(root, at) });
    const { packages } = JSON.parse(stdout);
    const own = packages.find(
      (one: { manifest_path: string }) => one.manifest_path === join(root, at, 'Cargo.toml'),
    );
    const normal = own.dependencies.filter(({ kind }: { kind: string | null }) => kind === null);
    return Object.fromEntries(
      normal.map((one: Record<string, unknown>) => [
        one['rename'] ?? one['name'],
        {
          ...{
            name: one['name'],
            version: one['req'],
            features: [...new Set(one['features'] as string[])].sort(),
          },
          default: one['uses_default_features'],
        },
      ]),
    );
  }

  /** What is sent, in the form of the above. */
  const inCargosForm = (sent: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(sent).map(([key, value]) => {
        const table = (typeof value === 'string' ? { version: value } : value) as Record<string, unknown>;
        const version = String(table['version']);
        return [
          key,
          {
            ...{ name: table['package'] ?? key, version: /^\d/.test(version) ? `^${version}` : version },
            ...{
              features: [...((table['features'] ?? []) as string[])].sort(),
              default: table['default-features'] ?? true,
            },
          },
        ];
      }),
    );

  const READ: readonly (readonly [what: string, files: Files, sent: Record<string, unknown>, at?: string])[] =
    [
      ['a version', { 'Cargo.toml': `${PACKAGE}[dependencies]\nuuid = "1.2"\n` }, { uuid: '1.2' }],
      [
        'a table, with both spellings of default-features',
        {
          'Cargo.toml': `${PACKAGE}[dependencies]
uuid = { version = "1", features = ["v4", "serde"], default-features = false }
chrono = { version = ">=0.4, <0.5", default_features = false }
`,
        },
        {
          uuid: { version: '1', features: ['v4', 'serde'], 'default-features': false },
          chrono: { version: '>=0.4, <0.5', 'default-features': false },
        },
      ],
      [
        'a crate by another name',
        {
          'Cargo.toml': `${PACKAGE}[dependencies]\nids = { package = "uuid", version = "1" }\n[dependencies.time]\nversion = "0.3"\n`,
        },
        { ids: { version: '1', package: 'uuid' }, time: '0.3' },
      ],
      [
        'nothing of tests and build scripts',
        { 'Cargo.toml': `${PACKAGE}[dev-dependencies]\nuuid = "1"\n[build-dependencies]\ncc = "1"\n` },
        {},
      ],
      [
        'what the workspace says, with more features',
        {
          'Cargo.toml': `[workspace]\nmembers = ["api"]\n[workspace.dependencies]
uuid = { version = "1", features = ["v4"], default-features = false }
time = "0.3"
regex = { version = "1", default-features = false }
ids = { package = "ulid", version = "1" }
`,
          'api/Cargo.toml': `${PACKAGE}[dependencies]
uuid = { workspace = true, features = ["serde", "v4"] }
time.workspace = true
regex = { workspace = true, default-features = true }
ids = { workspace = true }
`,
          'api/src/main.rs': 'fn main() {}',
        },
        {
          ids: { version: '1', package: 'ulid' },
          regex: '1',
          time: '0.3',
          uuid: { version: '1', features: ['v4', 'serde'], 'default-features': false },
        },
        'api',
      ],
    ];
  for (const [what, files, sent, at = ''] of READ)
    it(`reads ${what}, as cargo does`, async () => {
      const all = { ...(at === '' ? HANDLER : {}), ...files };
      const read = await dependencies(all, join(at, 'src/main.rs'));
      expect(read).to.deep.equal(sent);
      expect(inCargosForm(read as never)).to.deep.equal(await cargoDependencies(all, at));
    });

  /** Local crates are resolved without a registry, so cargo says which of them are used. */
  const USED: readonly (readonly [what: string, manifest: string, crates: Files])[] = [
    [
      'optional crates that the default features name',
      `[dependencies]
a = { path = "a", optional = true }
b = { path = "b", optional = true }
c = { path = "c", optional = true }
[features]
default = ["with-a", "b"]
with-a = ["dep:a"]
with-c = ["dep:c"]
`,
      { ...crate('a'), ...crate('b'), ...crate('c') },
    ],
    [
      'features of crates that features name, weak ones too',
      `[dependencies]
a = { path = "a", features = ["one"] }
b = { path = "b", optional = true }
c = { path = "c", optional = true }
[features]
default = ["a/two", "b/one", "c?/one", "b?/two"]
`,
      { ...crate('a', ['one', 'two']), ...crate('b', ['one', 'two']), ...crate('c', ['one']) },
    ],
    [
      'tables for the target, and not those for others',
      `[target.'cfg(unix)'.dependencies]
a = { path = "a", features = ["one"] }
[target.'cfg(windows)'.dependencies]
b = { path = "b" }
[target.x86_64-unknown-linux-gnu.dependencies]
c = { path = "c" }
[target.'cfg(all(target_os = "linux", not(target_env = "musl")))'.dependencies]
a = { path = "a", features = ["two"] }
`,
      { ...crate('a', ['one', 'two']), ...crate('b'), ...crate('c') },
    ],
  ];
  for (const [what, manifest, crates] of USED)
    it(`sends ${what}`, async () => {
      const files = { ...HANDLER, ...crates, 'Cargo.toml': PACKAGE + manifest };
      const read = (await dependencies(files)) as Record<string, { features?: readonly string[] }>;
      const args = [
        'tree',
        '--offline',
        '--depth',
        '1',
        '-e',
        'normal',
        '--prefix',
        'none',
        '--target',
        TARGET,
      ];
      const { stdout } = await execa('cargo', [...args, '-f', '{lib}|{f}'], { cwd: await onDisk(files) });
      const used = stdout
        .split('\n')
        .slice(1)
        .map((line) => line.split('|'));
      expect(Object.keys(read)).to.deep.equal(used.map(([name]) => name).sort());
      for (const [name = '', features = ''] of used)
        expect([...(read[name]?.features ?? [])].sort().join(','), name).to.equal(
          features
            .split(',')
            .filter((one) => one !== 'default')
            .sort()
            .join(','),
        );
    });

  it('leaves out the SDK, and what every handler has as it has it', async () => {
    const text = `${PACKAGE}[dependencies]
rust-edge-gateway-sdk = { version = "0.1", registry = "edge", features = ["async"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
tokio = "1"
`;
    const files = { ...HANDLER, 'Cargo.toml': text, 'Cargo.lock': 'version = 4\n' };
    expect(await dependencies(files)).to.deep.equal({ tokio: '1' });
    const { found: its } = await packageOf(
      { path: 'src/main.rs', within: '', isAsync: true },
      projectOf(files),
    );
    expect(its).to.deep.include({ dependencies: {}, lock: null });
    const more = {
      ...files,
      'Cargo.toml': text.replace(
        'serde_json = "1"',
        'serde_json = { version = "1", features = ["preserve_order"] }',
      ),
    };
    expect(await dependencies(more)).to.deep.equal({
      serde_json: { version: '1', features: ['preserve_order'] },
      tokio: '1',
    });
  });

  it('is that of the nearest Cargo.toml with a package, with the lock of its workspace and its edition', async () => {
    const files = {
      'Cargo.toml': '[workspace]\nmembers = ["api"]\n[workspace.package]\nedition = "2024"\n',
      'Cargo.lock': '# the lock\n',
      'api/Cargo.toml':
        '[package]\nname = "api"\nversion = "0.1.0"\nedition.workspace = true\n[dependencies]\nuuid = "1"\n',
      'api/handlers/Cargo.lock': '# another one',
    };
    const { found: its, paths } = await found(files, 'api/handlers/orders.rs');
    expect(its).to.deep.include({ dependencies: { uuid: '1' }, edition: '2024', lock: 'Cargo.lock' });
    expect([...paths]).to.include.members([
      'api/handlers/Cargo.toml',
      'api/Cargo.toml',
      'Cargo.toml',
      'Cargo.lock',
    ]);
    expect((await found(files, 'other/x.rs')).found).to.equal(undefined);
    expect((await found({}, 'x.rs')).found).to.equal(undefined);
  });

  it('sends local crates with their files, and those that they name in turn', async () => {
    const files: Files = {
      ...HANDLER,
      'Cargo.toml': `${PACKAGE}[workspace]\nmembers = ["crates/*"]\n[workspace.dependencies]\nuuid = "1"\nnames = { path = "crates/names" }\n[dependencies]\nshared = { path = "crates/shared" }\n`,
      ...crate(
        'crates/shared',
        [],
        '[dependencies]\nnames.workspace = true\nuuid = { workspace = true, features = ["v4"] }\n[dev-dependencies]\ntrybuild = "1"\n',
      ),
      'crates/shared/src/data.txt': 'data',
      ...crate('crates/names'),
      ...crate('crates/shared/nested'),
    };
    const { found: its, problems } = await found(files);
    expect(problems).to.deep.equal([]);
    expect(its?.dependencies).to.deep.equal({ shared: { path: 'crates/shared' } });
    // With that of the workspace, from which one takes something.
    expect([...(its?.files.keys() ?? [])]).to.have.members([
      ...['crates/shared/Cargo.toml', 'crates/shared/src/lib.rs', 'crates/shared/src/data.txt'],
      ...['crates/names/Cargo.toml', 'crates/names/src/lib.rs', 'Cargo.toml'],
    ]);
    for (const [path, content] of its?.files ?? []) expect(String(content), path).to.equal(files[path]);
    const { problems: outside } = await found(files, 'src/main.rs', 'src/');
    expect(outside.join()).to.include('Cargo.toml: dependencies.shared.path is outside of the root src');
  });

  it('counts the library of the package as a local crate', async () => {
    const files = {
      'api/Cargo.toml': `${PACKAGE}build = false\n[workspace]\n[[bin]]\nname = "a"\npath = "handlers/a.rs"\n[dependencies]\nuuid = "1"\n`,
      'api/src/lib.rs': 'mod orders;',
      'api/src/orders.rs': '',
      'api/src/unused.rs': '',
      'api/handlers/a.rs': '',
    };
    const { found: its } = await found(files, 'api/handlers/a.rs');
    expect(its?.dependencies).to.deep.equal({ shop: { path: 'api' }, uuid: '1' });
    expect([...(its?.files.keys() ?? [])]).to.have.members([
      'api/src/lib.rs',
      'api/src/orders.rs',
      'api/Cargo.toml',
    ]);
    const rooted = await found(files, 'api/handlers/a.rs', 'api/');
    expect(rooted.found?.dependencies).to.deep.equal({ shop: { path: '.' }, uuid: '1' });
    expect([...(rooted.found?.files.keys() ?? [])]).to.include('src/lib.rs');
    const { problems } = await found(files, 'api/handlers/a.rs', 'api/handlers/');
    expect(problems).to.deep.equal([
      'api/Cargo.toml: the library of the package is outside of the root api/handlers of the source',
    ]);
  });

  it('sends what the library of the package names on other targets, or optionally, because cargo wants to see it', async () => {
    const files = {
      ...HANDLER,
      'Cargo.toml': `${PACKAGE}[dependencies]\na = { path = "a", optional = true }\n[target.'cfg(windows)'.dependencies]\nb = { path = "b" }\n[build-dependencies]\nc = { path = "c" }\n`,
      ...{ ...crate('a'), ...crate('b'), ...crate('c') },
    };
    expect((await found(files)).found?.files.size).to.equal(0);
    const { found: its } = await found({ ...files, 'src/lib.rs': '' });
    expect(its?.dependencies).to.deep.equal({ shop: { path: '.' } });
    expect([...(its?.files.keys() ?? [])]).to.include.members([
      'a/Cargo.toml',
      'b/src/lib.rs',
      'c/Cargo.toml',
    ]);
  });

  it('leaves out the SDK from wherever it is', async () => {
    for (const path of ['/opt/edge-gateway/rust/sdk', '../sdk', '.edge/sdk']) {
      const text = `${PACKAGE}[dependencies]\nrust-edge-gateway-sdk = { path = "${path}" }\n`;
      expect(await dependencies({ ...HANDLER, 'Cargo.toml': text })).to.deep.equal({});
    }
  });

  it('names registries by their addresses, and git by its revision', async () => {
    const files = {
      ...HANDLER,
      '.cargo/config.toml': '[registries.ours]\nindex = "sparse+https://crates.example/"\n',
      'Cargo.toml': `${PACKAGE}[dependencies]
a = { version = "1", registry = "ours" }
b = { git = "https://git.example/b", rev = "${REV}", package = "bee" }
`,
    };
    expect(await dependencies(files)).to.deep.equal({
      a: { version: '1', registry: 'sparse+https://crates.example/' },
      b: { package: 'bee', git: 'https://git.example/b', rev: REV },
    });
  });

  it('requires addresses of registries in local crates, whose settings of cargo are not sent', async () => {
    const of = (member: string) => ({
      ...HANDLER,
      'Cargo.toml': `${PACKAGE}[dependencies]\na = { path = "a" }\n`,
      ...crate('a', [], `[dependencies]\nb = { version = "1", ${member} }\n`),
    });
    const { problems } = await found(of('registry = "ours"'));
    expect(problems.join()).to.include('a/Cargo.toml: dependencies.b.registry: in local crates');
    expect(await dependencies(of('registry-index = "sparse+https://crates.example/"'))).to.deep.equal({
      a: { path: 'a' },
    });
    const sdk = crate(
      'a',
      [],
      '[dependencies]\nrust-edge-gateway-sdk = { version = "0.1", registry = "edge" }\n',
    );
    expect(await dependencies({ ...of(''), ...sdk })).to.deep.equal({ a: { path: 'a' } });
  });

  const circle = {
    ...crate('a', [], '[dependencies]\nb = { path = "../b" }\n'),
    ...crate('b', [], '[dependencies]\na = { path = "../a" }\n'),
  };
  const REFUSED: readonly (readonly [what: string, manifest: string, said: string, more?: Files])[] = [
    ['what is no TOML', 'x = ', 'Cargo.toml:1: is not valid TOML'],
    [
      'an edition that is too old',
      PACKAGE.replace('2021', '2018'),
      'Cargo.toml: package.edition is 2018; handlers are compiled with 2021 or 2024',
    ],
    [
      'no edition',
      PACKAGE.replace(/edition.*\n/, ''),
      'Cargo.toml: package.edition is missing, which means 2015',
    ],
    [
      'git with a branch',
      `${PACKAGE}[dependencies]\na = { git = "https://x.example/a", branch = "main" }\n`,
      'Cargo.toml: dependencies.a: git needs rev with all 40 digits',
    ],
    [
      'git with a short revision',
      `${PACKAGE}[dependencies]\na = { git = "https://x.example/a", rev = "0123abc" }\n`,
      'Cargo.toml: dependencies.a: git needs rev',
    ],
    [
      'a path outside of the project',
      `${PACKAGE}[dependencies]\na = { path = "../a" }\n`,
      'Cargo.toml: dependencies.a.path: ../a is outside of the folder of the project',
    ],
    [
      'a path without a package',
      `${PACKAGE}[dependencies]\na = { path = "a" }\n`,
      'Cargo.toml: dependencies.a.path: there is no package in a',
    ],
    [
      'a crate of another name',
      `${PACKAGE}[dependencies]\na = { path = "b" }\n`,
      'Cargo.toml: dependencies.a.path: b/Cargo.toml has b, not a',
      crate('b'),
    ],
    [
      'crates in a circle',
      `${PACKAGE}[dependencies]\na = { path = "a" }\n`,
      'b/Cargo.toml: dependencies.a.path: crates in a circle: the folder of the project -> a -> b -> a',
      circle,
    ],
    [
      'a member that the workspace does not have',
      `${PACKAGE}[workspace]\n[dependencies]\na.workspace = true\n`,
      'Cargo.toml: dependencies.a: workspace: Cargo.toml has no workspace.dependencies.a',
    ],
    [
      'a member without a workspace',
      `${PACKAGE}[dependencies]\na.workspace = true\n`,
      'Cargo.toml: dependencies.a: workspace: the package is in no workspace of the project',
    ],
    [
      'no version',
      `${PACKAGE}[dependencies]\na = { features = ["x"] }\n`,
      'Cargo.toml: dependencies.a needs a version',
    ],
    [
      'a registry without an address',
      `${PACKAGE}[dependencies]\na = { version = "1", registry = "x" }\n`,
      'Cargo.toml: dependencies.a.registry: no .cargo/config.toml of the project has the index of x',
    ],
    [
      'what only nightly has',
      `${PACKAGE}[dependencies]\na = { version = "1", artifact = "bin" }\n`,
      'Cargo.toml: dependencies.a.artifact is not accepted',
    ],
    [
      'another name for the SDK',
      `${PACKAGE}[dependencies]\nsdk = { version = "0.1", package = "rust-edge-gateway-sdk" }\n`,
      'Cargo.toml: dependencies.sdk renames the SDK',
    ],
    [
      'crates that are patched',
      `${PACKAGE}[patch.crates-io]\na = { path = "a" }\n`,
      'Cargo.toml: patch: the gateway builds crates as they are named',
    ],
    [
      'a condition that is none',
      `${PACKAGE}[target.'cfg(unix'.dependencies]\na = "1"\n[target.'cfg(a b)'.dependencies]\n`,
      "Cargo.toml: target.'cfg(a b)' is no condition",
    ],
  ];
  for (const [what, manifest, said, more = {}] of REFUSED)
    it(`refuses ${what}, with its place`, async () => {
      const { found: its, problems } = await found({ ...HANDLER, ...more, 'Cargo.toml': manifest });
      expect(its).to.equal(undefined);
      expect(problems.join('\n')).to.include(said);
    });
});
