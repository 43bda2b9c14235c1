/** Which descriptors of its parent a process closes when it starts. */
import { spawnSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tempDir } from '../support/temp.js';

/** Node itself sees to inherited files with low numbers. */
const FREE_DESCRIPTORS = Array<'ignore'>(100).fill('ignore');
const MODULE = fileURLToPath(new URL('../../src/bootstrap/inherited-files.js', import.meta.url));
/** Prints what is open besides what is so without close-on-exec. */
const SCRIPT = `
import { readdirSync, readlinkSync } from 'node:fs';
const { closeInheritedFiles } = await import(${JSON.stringify(MODULE)});
const targets = () => readdirSync('/proc/self/fd').flatMap((fd) => {
  try {
    return [readlinkSync('/proc/self/fd/' + fd)];
  } catch {
    return [];
  }
});
const before = targets();
closeInheritedFiles();
console.log(JSON.stringify({ before, after: targets() }));`;

describe('inherited files', () => {
  it('closes inherited files unless they are open for reading only, as those that Node reads itself', async () => {
    const folder = await tempDir('inherited');
    const path = (name: string) => join(folder.path, name);
    try {
      const written = await open(path('written'), 'w+');
      await (await open(path('read'), 'w')).close();
      const read = await open(path('read'), 'r');
      try {
        const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'inherit', ...FREE_DESCRIPTORS, written.fd, read.fd],
        });
        const { before, after } = JSON.parse(stdout) as { before: string[]; after: string[] };
        expect(before).to.include.members([path('written'), path('read')]);
        expect(after).not.to.include(path('written'));
        expect(after).to.include(path('read'));
      } finally {
        await written.close();
        await read.close();
      }
    } finally {
      await folder.remove();
    }
  });
});
