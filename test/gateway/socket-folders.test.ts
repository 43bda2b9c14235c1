/** Socket folders of earlier gateways. */
import { mkdir, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { removeStaleSockets, socketOf } from '../../src/gateway/handlers/socket-folders.js';
import { THIS_PROCESS } from '../../src/util/process-liveness.js';
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
    dead.push(own.replace(THIS_PROCESS, `${process.pid}-1`));
    for (const path of [own, alive, ...dead, join(dead[0] ?? '', 'below')]) await mkdir(path);
    await removeStaleSockets(folder.path, createTestLog().log);
    expect(await readdir(folder.path)).to.have.members([basename(own), basename(alive)]);
  });

  it('gives the socket of a handler a name that others cannot guess, and that fits', () => {
    expect(socketOf('/run', 7)).not.to.equal(socketOf('/run', 7));
    const longest = socketOf('', 2 ** 24).replace(THIS_PROCESS, '4194304-18446744073709');
    // A socket may have 107 bytes, and the folder above 55.
    expect(longest).to.have.length.below(107 - 55); // and a slash
  });
});
