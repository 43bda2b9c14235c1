/** Programs that cannot be started, or not yet. */
import { readdirSync } from 'node:fs';
import { copyFile, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { UNCONFINED } from '../../src/sandbox/confinement.js';
import { spawnLimited } from '../../src/sandbox/limited-process.js';
import { isWaiting } from '../../src/sandbox/process-table.js';
import { eventually } from '../support/eventually.js';
import { tempDir } from '../support/temp.js';

describe('a program that cannot be started', () => {
  it('leaves no file open when a program cannot be started', () => {
    const before = readdirSync('/proc/self/fd').length;
    const start = () =>
      spawnLimited({
        ...{ confinement: UNCONFINED, file: '/bin/true', cwd: '/', env: {} },
        // More than the kernel accepts.
        args: ['x'.repeat(4 * 1024 * 1024)],
        limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
        stdio: ['ignore', 'ignore', 'ignore'],
      });
    for (let count = 0; count < 10; count++) expect(start).to.throw('E2BIG');
    expect(readdirSync('/proc/self/fd').length).to.equal(before);
  });
});

describe('a program that is still open for writing', () => {
  it('runs a program that is open for writing as soon as it is closed', async () => {
    const folder = await tempDir('busy-program');
    try {
      const file = join(folder.path, 'program');
      await copyFile('/bin/true', file);
      const writer = await open(file, 'r+');
      const program = spawnLimited({
        ...{ confinement: UNCONFINED, file, args: [], cwd: '/', env: {} },
        limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      try {
        const pid = (await program.pid) ?? 0;
        await eventually(async () => {
          expect(await readFile(`/proc/${pid}/comm`, 'utf8')).to.equal('launcher\n');
          expect(isWaiting(pid)).to.equal(true);
        });
      } finally {
        await writer.close();
      }
      expect(await program.ended).to.deep.equal({ code: 0, signal: null });
    } finally {
      await folder.remove();
    }
  });
});
