import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeDataDirectory } from '../../src/bootstrap/data-directory.js';
import { ConfigError } from '../../src/config.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('DATA_DIR', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('data-directory');
  });
  after(() => folder.remove());

  const modeOf = async (...names: string[]) => (await stat(join(folder.path, ...names))).mode & 0o777;

  it('creates DATA_DIR so that other users can list neither it nor its private folders', async () => {
    await makeDataDirectory(join(folder.path, 'new'));
    expect((await modeOf('new')) & 0o066).to.equal(0);
    for (const name of ['artifacts', 'handlers', 'uploads'])
      expect(await modeOf('new', name), name).to.equal(0o700);
  });

  it('keeps the mode of DATA_DIR that the operator has set', async () => {
    const own = join(folder.path, 'own');
    await mkdir(join(own, 'artifacts'), { recursive: true });
    await chmod(own, 0o750);
    await chmod(join(own, 'artifacts'), 0o770);
    await makeDataDirectory(own);
    expect(await modeOf('own')).to.equal(0o750);
    expect(await modeOf('own', 'artifacts')).to.equal(0o770);
  });

  it('names DATA_DIR and the reason when it cannot be used', async () => {
    const file = join(folder.path, 'file');
    await writeFile(file, '');
    for (const [path, reason] of [
      ['/proc/nope', 'no folder can be made there'],
      ['/proc/nope/deeper/still', 'no folder can be made there'],
      [file, 'is not a folder'],
      [join(file, 'below'), 'a part of the path is not a folder'],
      [join(folder.path, 'x'.repeat(300)), 'a name in it is too long'],
      [join(folder.path, 'x/'.repeat(300)), 'the path is longer than 512 bytes'],
    ] as const) {
      const error = await makeDataDirectory(path).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error, path).to.be.instanceOf(ConfigError);
      expect(String(error)).to.include(`DATA_DIR: ${path} cannot be used`).and.include(reason);
    }
  });
});
