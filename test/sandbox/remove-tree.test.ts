import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { removeTree } from '../../src/sandbox/remove-tree.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('removing files of untrusted programs', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('remove');
    await writeFile(join(folder.path, 'kept'), 'kept');
  });
  after(() => folder.remove());

  it('removes folders deeper than PATH_MAX, and follows no link', async () => {
    const left = join(folder.path, 'left');
    await mkdir(left);
    await symlink(folder.path, join(left, 'link'));
    const deep =
      'import os\nfor _ in range(3000):\n  os.mkdir("deep-deep")\n  os.chdir("deep-deep")\nos.symlink("/", "root")';
    execFileSync('python3', ['-c', deep], { cwd: left });
    execFileSync('chmod', ['000', join(left, 'deep-deep')]);
    await removeTree(left);
    expect(existsSync(left)).to.equal(false);
    expect(await readFile(join(folder.path, 'kept'), 'utf8')).to.equal('kept');
    await removeTree(left);
  });

  it('removes a link of an untrusted program, not its target', async () => {
    await symlink(join(folder.path, 'kept'), join(folder.path, 'link'));
    await removeTree(join(folder.path, 'link'));
    expect(existsSync(join(folder.path, 'link'))).to.equal(false);
    expect(existsSync(join(folder.path, 'kept'))).to.equal(true);
  });
});
