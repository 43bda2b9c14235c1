/** `node scripts/bundle.mjs`: folders packed into bundles. */
import { mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { execa } from 'execa';
import { openArchive } from '../../../src/import/bundle/archive.js';
import { readBundle } from '../../../src/import/bundle/read-bundle.js';
import { bundleOf } from '../../support/examples.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const SCRIPT = fileURLToPath(new URL('../../../../scripts/bundle.mjs', import.meta.url));
const LIMITS = {
  entries: 100,
  unpackedBytes: 2 ** 20,
  specBytes: 2 ** 20,
  operations: 100,
  codeBytes: 2 ** 20,
  sourceFiles: 1_000,
};

describe('bundle script', () => {
  let temp: TempDir;
  beforeEach(async () => {
    temp = await tempDir('bundle-script');
  });
  afterEach(() => temp.remove());

  /** Creates a folder with these files. */
  async function folder(name: string, files: Record<string, string>): Promise<string> {
    for (const [path, data] of Object.entries(files)) {
      const file = join(temp.path, name, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, data);
    }
    return join(temp.path, name);
  }

  async function expectFailure(args: string[], message: RegExp): Promise<void> {
    const { exitCode, stderr } = await execa(process.execPath, [SCRIPT, ...args], { reject: false });
    expect(exitCode).to.equal(1);
    expect(stderr).to.match(message);
  }

  const PETS = { 'openapi.yaml': 'x', 'handlers/b.rs': 'b', 'handlers/a.rs': 'a', 'README.md': 'r' };

  it('packs a folder into an archive beside it, without hidden files', async () => {
    const path = await folder('pets', { ...PETS, '.git/config': '', 'handlers/.DS_Store': '' });
    const { stdout } = await execa(process.execPath, [SCRIPT, 'pets/'], { cwd: temp.path });
    expect(stdout).to.match(/pets\.zip: 4 files, \d+ bytes$/);
    expect(await readdir(temp.path)).to.have.members(['pets', 'pets.zip']);
    const files = await openArchive(`${path}.zip`, LIMITS);
    const contents = await Promise.all(files.map(async (file) => [file.path, String(await file.read())]));
    expect(Object.fromEntries(contents)).to.deep.equal(PETS);
  });

  it('packs a folder into the same bytes at any time, in any time zone, with files in any order', async () => {
    const first = await folder('first', PETS);
    const second = await folder('second', Object.fromEntries(Object.entries(PETS).toReversed()));
    await utimes(join(second, 'openapi.yaml'), 1, 1);
    const bytes = async (from: string, TZ: string) => {
      const out = join(temp.path, `${basename(from)}-out.zip`);
      await execa(process.execPath, [SCRIPT, from, out], { env: { TZ } });
      return readFile(out);
    };
    const [one, other] = [await bytes(first, 'UTC'), await bytes(second, 'Asia/Tokyo')];
    expect(one.equals(other)).to.equal(true);
  });

  it('replaces the archive of a folder that is packed again', async () => {
    const path = await folder('pets', PETS);
    await writeFile(`${path}.zip`, 'old');
    await execa(process.execPath, [SCRIPT, path]);
    expect(await openArchive(`${path}.zip`, LIMITS)).to.have.length(4);
  });

  it('prints the usage of the bundle script', async () => {
    const { stdout } = await execa(process.execPath, [SCRIPT, '--help']);
    expect(stdout).to.match(/^Usage: node scripts\/bundle\.mjs FOLDER \[OUT\.zip\]/);
    await expectFailure([], /Usage: /);
    await expectFailure(['a', 'b', 'c'], /Usage: /);
    await expectFailure(['--fast'], /Unknown option '--fast'/);
  });

  it('reports folders that cannot be packed into a bundle, and archives that cannot be written', async () => {
    const path = await folder('pets', PETS);
    await expectFailure([join(temp.path, 'nowhere')], /nowhere is not a folder/);
    await expectFailure([join(path, 'openapi.yaml')], /openapi\.yaml is not a folder/);
    await expectFailure(
      [await folder('empty', { 'a.rs': '' })],
      /empty is no bundle: it has neither openapi\.yaml, .* nor bundle\.yaml/,
    );
    await expectFailure([path, join(path, 'out.zip')], /out\.zip is in the folder that is packed/);
    await expectFailure([path, temp.path], /is a folder; name a file/);
    await expectFailure([path, join(temp.path, 'nowhere', 'out.zip')], /out\.zip cannot be written: ENOENT/);
    await symlink('openapi.yaml', join(path, 'link.rs'));
    await expectFailure([path], /link\.rs is not a plain file/);
    expect(await readdir(temp.path)).to.have.members(['pets', 'empty']);
  });

  it('packs the petstore, in which all operations have a handler', async () => {
    const file = join(temp.path, 'petstore.zip');
    await writeFile(file, await bundleOf('petstore'));
    const { title, endpoints, warnings, problems } = await readBundle(file, LIMITS);
    expect({ title, warnings, problems }).to.deep.equal({ title: 'Petstore', warnings: [], problems: [] });
    expect(Object.fromEntries(endpoints.map(({ name, handler }) => [name, handler?.file]))).to.deep.equal({
      listPets: 'handlers/list_pets.rs',
      createPet: 'handlers/save_pet.rs',
      getPet: 'handlers/get_pet.rs',
      updatePet: 'handlers/save_pet.rs',
      deletePet: 'handlers/delete_pet.rs',
    });
  });
});
