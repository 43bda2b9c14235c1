import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { cargoHome, copyCrates, onlySources, registryCrates } from '../../src/build/set-crates.js';
import { DiskFullError } from '../../src/util/disk-full.js';
import { mountSmallDisk } from '../support/faults/small-disk.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { TOOL_LIMITS } from '../support/tool-limits.js';

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

  it('lists the crates of a lock file that come from registries', () => {
    expect(registryCrates(LOCK)).to.deep.equal([
      { name: 'Serde', version: '1.0.2+build.1' },
      { name: 'fnv', version: '1.0.7' },
    ]);
    expect(registryCrates('')).to.deep.equal([]);
  });

  it('copies the crates of a set alone, readable for all, without credentials', async () => {
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
    const env = { CARGO_HOME: home, PATH: process.env['PATH'] ?? '' };
    const failed = await copyCrates(LOCK, own, (path) => path, { env, limits: TOOL_LIMITS });
    expect(failed).to.equal(undefined);

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

  it('says that the disk is full when crates cannot be copied for it', async () => {
    const [home, own] = [join(folder.path, 'full-home'), join(folder.path, 'full')];
    const packed = join(home, 'registry', 'cache', 'example-1');
    await mkdir(packed, { recursive: true });
    await mkdir(join(home, 'registry', 'index', 'example-1'), { recursive: true });
    await writeFile(join(packed, 'fnv-1.0.7.crate'), Buffer.alloc(2 * 1024 ** 2));
    const disk = await mountSmallDisk(own, 1);
    try {
      const env = { CARGO_HOME: home, PATH: process.env['PATH'] ?? '' };
      const copying = copyCrates(LOCK, own, (path) => path, { env, limits: TOOL_LIMITS });
      const error = await copying.catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(DiskFullError);
      expect(String(error)).to.match(/crates cannot be copied: cp: .*No space left on device/);
    } finally {
      await disk.unmount();
    }
  });

  it('keeps only the sources of crates of a configuration of cargo, and finds its folder', () => {
    expect(
      onlySources(' [ source.a ]\nregistry = "x"\n[sources]\nx = 1\n["source"]\nx = 1\n[source]\ny = 2\n'),
    ).to.equal(' [ source.a ]\nregistry = "x"\n[source]\ny = 2\n');
    expect(onlySources('token = "secret"\n[registries.mine]\ntoken = "secret"\n')).to.equal('');
    expect(cargoHome({ HOME: '/home/me' })).to.equal('/home/me/.cargo');
    expect(cargoHome({ HOME: '/home/me', CARGO_HOME: '/cargo' })).to.equal('/cargo');
  });
});
