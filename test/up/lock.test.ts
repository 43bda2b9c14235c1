/** The lock of `npm run up` on DATA_DIR. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { lockDataDir } from '../../src/up/lock.js';
import { tempDir } from '../support/temp.js';

describe('the lock of DATA_DIR', () => {
  it('is held by a process, and not by a later one with the same id', async () => {
    const folder = await tempDir('lock');
    try {
      const unlock = await lockDataDir(folder.path);
      const thrown = await lockDataDir(folder.path).catch(String);
      expect(thrown).to.include(`already runs in ${folder.path} (process ${process.pid})`);
      // A container that is restarted gives the same ids to new processes.
      const file = join(folder.path, 'up.pid');
      const earlier = (await readFile(file, 'utf8')).replace(/ \d+$/, ' 1');
      await writeFile(file, earlier);
      await (await lockDataDir(folder.path))();
      await unlock();
    } finally {
      await folder.remove();
    }
  });
});
