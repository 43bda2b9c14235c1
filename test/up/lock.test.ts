/** The lock of `npm run up` on DATA_DIR. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { lockDataDir } from '../../src/up/lock.js';
import { THIS_PROCESS } from '../../src/util/process-liveness.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** An earlier process with the id of this one, as in a restarted container. */
const EARLIER = `${process.pid}-1`;

describe('the lock of DATA_DIR', () => {
  let folder: TempDir;
  let file: string;
  beforeEach(async () => {
    folder = await tempDir('lock');
    file = join(folder.path, 'up.pid');
  });
  afterEach(() => folder.remove());

  it('lets one process at a time hold the lock of DATA_DIR, which unlocking removes', async () => {
    const unlock = lockDataDir(folder.path);
    expect(() => lockDataDir(folder.path)).to.throw(
      `already runs in ${folder.path} (process ${process.pid})`,
    );
    unlock();
    expect(await readdir(folder.path)).to.deep.equal([]);
    lockDataDir(folder.path)();
  });

  it('takes over the lock of DATA_DIR from a killed process, even from one killed in a takeover', async () => {
    await symlink(EARLIER, file);
    await symlink(EARLIER, `${file}.next`);
    const unlock = lockDataDir(folder.path);
    expect(await readlink(file)).to.equal(THIS_PROCESS);
    expect(await readdir(folder.path)).to.deep.equal(['up.pid']);
    unlock();
  });

  it('understands a lock of DATA_DIR in the format of an earlier version', async () => {
    await writeFile(file, THIS_PROCESS.replace('-', ' '));
    expect(() => lockDataDir(folder.path)).to.throw('already runs');
    for (const left of [EARLIER.replace('-', ' '), '']) {
      await writeFile(file, left);
      lockDataDir(folder.path)();
    }
  });

  it('lets only one of several concurrent processes take over the lock of DATA_DIR', async () => {
    const contender = fileURLToPath(new URL('../support/lock-contender.js', import.meta.url));
    const contenders = Array.from({ length: 4 }, () => fork(contender, [folder.path]));
    const answers = (question: string) =>
      Promise.all(
        contenders.map(async (child: ChildProcess) => {
          const answered = once(child, 'message');
          child.send(question);
          return (await answered)[0] as boolean;
        }),
      );
    try {
      for (let round = 0; round < 300; round++) {
        await symlink(EARLIER, file);
        expect((await answers('lock')).filter((isHeld) => isHeld)).to.have.length(1);
        await answers('unlock');
        await rm(file, { force: true });
      }
    } finally {
      for (const child of contenders) child.kill();
    }
  });
});
