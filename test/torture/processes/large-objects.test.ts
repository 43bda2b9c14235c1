/** Files that are larger than what the processes on their way may take of memory. */

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { deployLargeFiles, expectSentAndRead } from '../../support/large-objects.js';
import { type Stack, startStack } from '../../support/processes.js';
import { tempDir } from '../../support/temp.js';

const MEGABYTE = 1024 * 1024;

describe('large files through a handler into an object storage', function () {
  this.timeout(180_000);
  let stack: Stack;
  let removeStorage: () => Promise<void>;
  before(async () => {
    stack = await startStack();
    removeStorage = await deployLargeFiles(stack);
  });
  after(async () => {
    await stack.close();
    await removeStorage?.();
  });

  it('returns a file of 200 MiB unchanged through a handler, with little memory', () =>
    expectSentAndRead(stack, 200 * MEGABYTE));

  it('sends and reads a file of 20 MiB through a handler with curl', async () => {
    const folder = await tempDir('curl');
    const [sent, read] = ['sent', 'read'].map((name) => join(folder.path, name)) as [string, string];
    try {
      await writeFile(sent, randomBytes(20 * MEGABYTE));
      const url = `${stack.gatewayUrl}/large-files/film.mp4`;
      const { stdout } = await execa('curl', ['--silent', '--fail-with-body', '-T', sent, url]);
      expect(JSON.parse(stdout)).to.deep.equal({ name: 'film.mp4', size: 20 * MEGABYTE });
      await execa('curl', ['--silent', '--fail-with-body', '-o', read, url]);
      expect((await readFile(sent)).equals(await readFile(read))).to.equal(true);
    } finally {
      await folder.remove();
    }
  });

  it('stores no object when the client disconnects in the middle of an upload', async () => {
    const sending = execa('curl', ['--silent', '-T', '-', `${stack.gatewayUrl}/large-files/half`], {
      reject: false,
      stdout: 'ignore',
    });
    // More than a part, and not the end.
    sending.stdin?.write(randomBytes(12 * MEGABYTE));
    await new Promise((resolve) => setTimeout(resolve, 500));
    sending.kill('SIGKILL');
    await sending;
    const { status } = await stack.gateway.get('/large-files/half');
    expect(status).to.equal(404);
  });
});
