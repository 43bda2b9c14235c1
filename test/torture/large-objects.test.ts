/** A file of 1 GB through a handler into an object storage, and back. */
import { deployLargeFiles, expectSentAndRead } from '../support/large-objects.js';
import { type Stack, startStack } from '../support/processes.js';

const GIGABYTE = 1024 ** 3;

describe('a gigabyte through a handler into an object storage', function () {
  this.timeout(600_000);
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

  it('a gigabyte in an object storage comes back as it was, and takes at most 50 MB in each process', () =>
    expectSentAndRead(stack, GIGABYTE));
});
