/** `edge` while the gateway takes long. */
import { join } from 'node:path';
import { expect } from 'chai';
import { edge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { holdBuilds } from '../support/held-builds.js';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('edge deploy, when a build takes longer than the gateway waits for it', function () {
  this.timeout(120_000);
  let stack: Stack;
  let folder: TempDir;

  before(async () => {
    folder = await tempDir('waiting');
    stack = await startStack({ env: { COMPILE_WAIT_MS: '500' } });
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('edge deploy says that nothing was deployed when a build takes long, and waits for it the next time', async () => {
    const shop = join(folder.path, 'shop');
    const env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: stack.apiUrl };
    expect((await edge(['init', shop], { env })).code).to.equal(0);
    const held = await holdBuilds(stack.databaseUrl);
    try {
      const { code, stdout, stderr } = await edge(['deploy', shop], { env });
      expect([code, stdout], stderr).to.deep.equal([1, '']);
      expect(stderr).to.include('(wait_timeout)').and.include('Nothing was deployed. Run it again');
    } finally {
      await held.release();
    }
    await eventually(async () => {
      const again = await edge(['deploy', shop], { env });
      expect(again.code, again.stderr).to.equal(0);
      expect(again.stdout).to.include('version 1 serves');
    });
  });
});
