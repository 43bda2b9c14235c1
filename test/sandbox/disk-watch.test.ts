import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { bytesIn, watchDisk } from '../../src/sandbox/disk-watch.js';
import { eventually } from '../support/eventually.js';
import { type TempDir, tempDir } from '../support/temp.js';

const MEGABYTE = 1024 * 1024;

describe('the watch over what a tool writes', () => {
  let folder: TempDir;
  beforeEach(async () => {
    folder = await tempDir('disk');
  });
  afterEach(() => folder.remove());
  const file = (name: string, megabytes: number) =>
    writeFile(join(folder.path, name), Buffer.alloc(megabytes * MEGABYTE, 7));

  it('counts the bytes of files in a folder, but neither holes nor targets of links', async () => {
    await mkdir(join(folder.path, 'deep', 'er'), { recursive: true });
    await file('deep/er/two', 2);
    await file('one', 1);
    await writeFile(join(folder.path, 'hole'), '');
    await truncate(join(folder.path, 'hole'), 1024 * MEGABYTE);
    await symlink('/usr', join(folder.path, 'usr'));
    const bytes = await bytesIn([folder.path], Number.POSITIVE_INFINITY);
    expect(bytes).to.be.within(3 * MEGABYTE, 4 * MEGABYTE);
  });

  it('counts empty files in a folder, and no further than it must', async () => {
    for (let at = 0; at < 300; at++) await writeFile(join(folder.path, `empty-${at}`), '');
    expect(await bytesIn([folder.path], Number.POSITIVE_INFINITY)).to.be.at.least(300 * 4096);
    expect(await bytesIn([folder.path], MEGABYTE / 4)).to.be.within(MEGABYTE / 4, MEGABYTE / 2);
    expect(await bytesIn([join(folder.path, 'none')], 1)).to.equal(0);
  });

  it('reports when a tool has written too much', async () => {
    let reports = 0;
    const watch = watchDisk([folder.path], 2, () => reports++);
    try {
      await file('one', 1);
      expect(await watch.isOver()).to.equal(false);
      await file('two', 2);
      await eventually(() => expect(reports).to.equal(1));
      expect(await watch.isOver()).to.equal(true);
    } finally {
      watch.stop();
    }
  });
});
