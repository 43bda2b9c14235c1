/** Where files for programs of other users are when DATA_DIR is in a folder that only root may enter. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { makeFolderOfRoot, REACHABLE_BASE, reachableFolder } from '../../src/bootstrap/reachable-folder.js';
import { runDirectory } from '../../src/bootstrap/run-directory.js';
import { makePassable, mappedRange, UNTRUSTED_GROUP } from '../../src/util/untrusted-users.js';
import { type TempDir, tempDir } from '../support/temp.js';

const isRoot = process.getuid?.() === 0;
/** A user without rights, when this process is root. */
const OTHER_USER = 65_534;

describe('folders that other users have to reach', () => {
  let folder: TempDir;
  beforeEach(async () => {
    folder = await tempDir('reachable');
  });
  afterEach(() => folder.remove());

  it('places a reachable folder in DATA_DIR when everybody can enter DATA_DIR', async () => {
    expect(await reachableFolder(folder.path, 'run')).to.equal(join(folder.path, 'run'));
  });

  it('places a reachable folder outside DATA_DIR, always the same, when a folder above is closed', async () => {
    const dataDir = join(folder.path, 'data');
    await mkdir(dataDir, { mode: 0o755 });
    await chmod(folder.path, 0o700);
    const place = await reachableFolder(dataDir, 'run');
    if (!isRoot) {
      expect(place).to.equal(join(dataDir, 'run'));
      return;
    }
    try {
      expect(place).to.match(new RegExp(`^${REACHABLE_BASE}/[0-9a-f]{12}/run$`));
      expect(await reachableFolder(dataDir, 'run')).to.equal(place);
      expect((await stat(dirname(place))).mode & 0o777).to.equal(0o755);
    } finally {
      await rm(dirname(place), { recursive: true });
    }
  });

  it('refuses a folder of root that another user may have made', async () => {
    const path = (name: string) => join(folder.path, name);
    for (const name of ['good', 'writable', 'foreign']) await mkdir(path(name));
    await symlink(path('good'), path('link'));
    await chmod(path('writable'), 0o777);
    if (isRoot) {
      await chown(path('foreign'), 1, 1);
      await makeFolderOfRoot(path('good'));
    }
    for (const name of ['writable', 'foreign', 'link']) {
      const thrown = await makeFolderOfRoot(path(name)).catch(String);
      expect(thrown).to.include(`${path(name)} is not a folder that belongs to root`);
    }
  });

  it('makes a run directory whose path is short enough for sockets', async () => {
    const dataDir = join(folder.path, 'x'.repeat(100));
    const run = await runDirectory(dataDir);
    try {
      expect(run).to.match(isRoot ? new RegExp(`^${REACHABLE_BASE}/[0-9a-f]{12}/run$`) : /edge-gateway-\w+$/);
      expect(await runDirectory(dataDir)).to.equal(run);
    } finally {
      await rm(isRoot ? dirname(run) : run, { recursive: true });
    }
  });

  it('refuses, without root, a run directory that another user may have made', async () => {
    const dataDir = join(folder.path, 'x'.repeat(100));
    await mkdir(dataDir, { mode: 0o777 });
    if (isRoot) await chown(dataDir, OTHER_USER, OTHER_USER);
    const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
    const run = join(tmpdir(), `edge-gateway-${digest}`);
    await symlink(folder.path, run);
    try {
      const refusal = await runDirectoryOfOther(dataDir);
      expect(refusal).to.include(`${run}, for the sockets of ${dataDir}, is not a private folder`);
    } finally {
      await rm(run);
    }
  });

  it('lets untrusted programs, and no other users, traverse a folder', async () => {
    const path = join(folder.path, 'run');
    await makePassable(path);
    const { mode, gid } = await stat(path);
    expect(mode & 0o777).to.equal(isRoot ? 0o710 : 0o700);
    if (isRoot) expect(gid).to.equal(UNTRUSTED_GROUP);
  });
});

/**
 * Calls `runDirectory` as another user than root.
 * @returns what it returns, or its error
 */
async function runDirectoryOfOther(dataDir: string): Promise<string> {
  // Root loads the modules first, because the other user may not be able to read them.
  const module = `
    import { runDirectory } from '${new URL('../../src/bootstrap/run-directory.js', import.meta.url).href}';
    if (${isRoot}) { process.setgroups([]); process.setgid(${OTHER_USER}); process.setuid(${OTHER_USER}); }
    console.log(await runDirectory('${dataDir}').catch(String));`;
  const run = [process.execPath, '--input-type=module', '-e', module];
  // Without this capability, root runs no programs as other users either.
  const asRoot = ['setpriv', '--bounding-set=-chown', '--inh-caps=-chown'];
  const [file = '', ...args] = isRoot ? [...asRoot, ...run] : run;
  return (await promisify(execFile)(file, args)).stdout;
}

describe('the ids of untrusted programs', () => {
  const preferred = { first: 1_900_000_000, count: 1000 };

  it('uses the preferred ids for untrusted programs when all ids exist', () => {
    expect(mappedRange('         0          0 4294967295\n', preferred)).to.deep.equal(preferred);
  });

  it('uses the upper half of the ids of a container for untrusted programs', () => {
    const map = '         0       1000          1\n         1     100000      65536\n';
    expect(mappedRange(map, preferred)).to.deep.equal({ first: 30_593, count: 30_591 });
  });

  it('excludes the dynamic users of systemd, and nobody, from the ids of untrusted programs', () => {
    for (const count of [65_536, 100_000, 150_000]) {
      const { first, count: usable } = mappedRange(`0 100000 ${count}`, preferred);
      expect(first + usable <= 61_184 || first >= 65_536, `${first} ${usable}`).to.equal(true);
      expect(first + usable).to.be.at.most(count);
    }
  });
});
