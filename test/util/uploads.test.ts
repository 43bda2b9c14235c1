import { mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { THIS_PROCESS } from '../../src/util/process-liveness.js';
import { removeStaleUploads, uploadsFolder } from '../../src/util/uploads.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** Above the maximum process id of Linux. */
const NO_PID = 4_194_305;

describe('abandoned uploads', () => {
  let data: TempDir;
  before(async () => {
    data = await tempDir('uploads');
  });
  after(() => data.remove());

  /** A folder with a file, with this age. */
  async function left(name: string, hours: number): Promise<void> {
    const folder = join(data.path, 'uploads', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'body.json'), '{}');
    await age(folder, hours);
  }
  async function age(folder: string, hours: number): Promise<void> {
    const then = new Date(Date.now() - hours * 3600_000);
    await utimes(folder, then, then);
  }

  it('removes uploads of processes that have ended, or of other hosts after a day, and keeps others', async () => {
    await removeStaleUploads(data.path);
    await left(`${hostname()}.${NO_PID}`, 0);
    await left(`${hostname()}.${process.ppid}-1`, 0);
    await left(`${hostname()}.${process.pid}-1`, 0);
    await left(`${hostname()}.${process.pid}`, 0);
    await left(`${hostname()}.${process.ppid}`, 50);
    await left(`${hostname()}.${THIS_PROCESS}`, 50);
    await left(`b4c0ffee.${NO_PID}`, 25);
    await left(`b4c0ffee.${process.ppid}`, 25);
    await left('web-2.example.1', 23);
    await left('something else', 50);
    await removeStaleUploads(data.path);
    expect(await readdir(join(data.path, 'uploads'))).to.have.members([
      `${hostname()}.${process.ppid}`,
      `${hostname()}.${THIS_PROCESS}`,
      'web-2.example.1',
      'something else',
    ]);
  });

  it('renews the age of the uploads folder when a process starts to receive an upload', async () => {
    const folder = await uploadsFolder(data.path);
    await age(folder, 50);
    expect(await uploadsFolder(data.path)).to.equal(folder);
    expect((await stat(folder)).mtimeMs).to.be.greaterThan(Date.now() - 3600_000);
  });
});
