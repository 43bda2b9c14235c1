import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { cargoHome, copyCrates, onlySources, registryCrates } from '../../src/build/set-crates.js';
import { type TempDir, tempDir } from '../support/temp.js';

const LOCK = `version = 4

[[package]]
name = "handler"
version = "0.0.0"
dependencies = [ "serde" ]

[[package]]
name = "Serde"
version = "1.0.2+build.1"
source = "registry+https://example.org/index"
checksum = "00"

[[package]]
name = "fnv"
version = "1.0.7"
source = "sparse+https://example.org/"

[[package]]
name = "from-git"
version = "1.0.0"
source = "git+https://example.org/x"
`;

describe('the crates of a dependency set', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('crates');
  });
  after(() => folder.remove());

  it('are those of the lock that come from registries', () => {
    expect(registryCrates(LOCK)).to.deep.equal([
      { name: 'Serde', version: '1.0.2+build.1' },
      { name: 'fnv', version: '1.0.7' },
    ]);
    expect(registryCrates('')).to.deep.equal([]);
  });

  it('are copied alone, readable for all, without credentials', async () => {
    const [home, own] = [join(folder.path, 'home'), join(folder.path, 'own')];
    const files: Record<string, string> = {
      'registry/index/example-1/config.json': '{}',
      'registry/index/example-1/.cache/se/rd/serde': 'serde',
      'registry/index/example-1/.cache/3/f/fnv': 'fnv',
      'registry/index/example-1/.cache/ot/he/other': 'other',
      'registry/cache/example-1/Serde-1.0.2+build.1.crate': 'packed',
      'registry/cache/example-1/other-1.0.0.crate': 'packed',
      'registry/src/example-1/Serde-1.0.2+build.1/src/lib.rs': 'the source',
      'registry/src/example-1/other-1.0.0/src/lib.rs': 'of others',
      'credentials.toml': 'token = "secret"',
      'config.toml':
        '[registry]\ntoken = "secret"\n[source.crates-io]\nreplace-with = "mirror"\n[http]\nproxy = "user:secret@proxy"\n',
    };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(home, path)), { recursive: true });
      await writeFile(join(home, path), text);
    }
    const source = 'registry/src/example-1/Serde-1.0.2+build.1/src/lib.rs';
    await chmod(join(home, source), 0o400);
    await chmod(dirname(join(home, source)), 0o700);
    await mkdir(own);
    await copyCrates(home, LOCK, own, (path) => path);

    const copied = await readdir(own, { recursive: true, withFileTypes: true });
    expect(copied.filter((entry) => entry.isFile()).map(({ name }) => name)).to.have.members([
      'config.json',
      'serde',
      'fnv',
      'Serde-1.0.2+build.1.crate',
      'lib.rs',
      'config.toml',
    ]);
    expect(await readFile(join(own, 'config.toml'), 'utf8')).to.equal(
      '[source.crates-io]\nreplace-with = "mirror"\n',
    );
    expect((await stat(join(own, source))).mode & 0o444).to.equal(0o444);
    expect((await stat(dirname(join(own, source)))).mode & 0o555).to.equal(0o555);
  });

  it('come from where the configuration of cargo says', () => {
    expect(
      onlySources(' [ source.a ]\nregistry = "x"\n[sources]\nx = 1\n["source"]\nx = 1\n[source]\ny = 2\n'),
    ).to.equal(' [ source.a ]\nregistry = "x"\n[source]\ny = 2\n');
    expect(onlySources('token = "secret"\n[registries.mine]\ntoken = "secret"\n')).to.equal('');
    expect(cargoHome({ HOME: '/home/me' })).to.equal('/home/me/.cargo');
    expect(cargoHome({ HOME: '/home/me', CARGO_HOME: '/cargo' })).to.equal('/cargo');
  });
});
