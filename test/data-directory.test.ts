import { chmod, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeDataDirectory } from '../src/data-directory.js';
import { type TempDir, tempDir } from './support/temp.js';

describe('DATA_DIR', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('data-directory');
  });
  after(() => folder.remove());

  const modeOf = async (...names: string[]) => (await stat(join(folder.path, ...names))).mode & 0o777;

  it('is made so that others cannot look into it, nor at what it is made for', async () => {
    await makeDataDirectory(join(folder.path, 'new'));
    expect((await modeOf('new')) & 0o066).to.equal(0);
    for (const name of ['artifacts', 'handlers', 'uploads'])
      expect(await modeOf('new', name), name).to.equal(0o700);
  });

  it('stays as the operator has made it', async () => {
    const own = join(folder.path, 'own');
    await mkdir(join(own, 'artifacts'), { recursive: true });
    await chmod(own, 0o750);
    await chmod(join(own, 'artifacts'), 0o770);
    await makeDataDirectory(own);
    expect(await modeOf('own')).to.equal(0o750);
    expect(await modeOf('own', 'artifacts')).to.equal(0o770);
  });
});
