/** Cleanup when a program cannot be started. */
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { UNCONFINED } from '../../src/sandbox/confinement.js';
import { spawnLimited } from '../../src/sandbox/limited-process.js';

describe('a program that cannot be started', () => {
  it('leaves no file open', () => {
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
