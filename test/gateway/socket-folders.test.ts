/** Socket folders of earlier gateways. */
import { mkdir, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { removeStaleSockets, socketOf } from '../../src/gateway/socket-folders.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('socket folders of handlers', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('socket-folders');
  });
  after(() => folder.remove());

  it('removes socket folders of ended gateways, even of those with the id of a running process', async () => {
    const own = dirname(socketOf(folder.path, 1));
    const earlier = [`${process.pid}-1`, `${process.ppid}-1`, `${2 ** 22 + 1}-1`];
    // Earlier versions used the process id alone.
    const ofEarlierVersions = [process.pid, 2 ** 22 + 1];
    const dead = [...earlier, ...ofEarlierVersions].map((owner) => join(folder.path, `handler-${owner}-1`));
    const alive = join(folder.path, `handler-${process.ppid}-1`);
    for (const path of [own, alive, ...dead, join(dead[0] ?? '', 'below')]) await mkdir(path);
    await removeStaleSockets(folder.path, createTestLog().log);
    expect(await readdir(folder.path)).to.have.members([basename(own), basename(alive)]);
  });
});
