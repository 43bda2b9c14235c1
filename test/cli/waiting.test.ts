/** `edge` while the gateway takes long. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { updateNodeInfo } from '../../src/store/nodes.js';
import { startApi } from '../support/api.js';
import { edge, startEdge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { holdBuilds } from '../support/held-builds.js';
import { addNode } from '../support/nodes.js';
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

describe('edge deploy, while crates are built', function () {
  this.timeout(60_000);

  it('edge deploy shows the crate that is compiled, and waits as long as it is told', async () => {
    const folder = await tempDir('crates');
    const api = await startApi({ config: { COMPILE_WAIT_MS: 300 } });
    try {
      // Nobody compiles here.
      await addNode(api.store, 'gateway');
      const preparing = [{ what: 'crates of handlers', crates: 7, of: 31, seconds: 40, problem: null }];
      const worker = await addNode(api.store, 'worker', { info: { preparing } });
      const shop = join(folder.path, 'shop');
      await mkdir(shop);
      const endpoint =
        '{host: shop.test, method: GET, route: /, name: hello, handler: hello.rs, dependencies: {}}';
      await writeFile(join(shop, 'edge.yaml'), `endpoints:\n  - ${endpoint}\n`);
      await writeFile(join(shop, 'hello.rs'), '// a handler\n');
      const env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: api.url };
      const deploying = startEdge(['deploy', shop], { env });
      const build = await eventually(async () => {
        const row = await api.store.knex('builds').first('id');
        return (row as { id: string }).id;
      });
      const crate = { crate: 'reqwest', crate_seconds: 22 };
      const crates = [
        { ...{ crates: 7, of: 31, seconds: 40 }, ...crate, builds: [{ id: build, endpoint: 'hello' }] },
      ];
      await updateNodeInfo(api.store, { id: worker, info: { preparing, crates } });
      await api.store.knex('builds').where({ id: build }).update({ state: 'running' });
      await deploying.says('crates 7 of 31: reqwest (22 s)', 30_000);
      await deploying.end();
      const { code, stdout, stderr } = await edge(['deploy', shop, '--timeout', '1'], { env });
      expect([code, stdout], stderr).to.deep.equal([1, '']);
      expect(stderr).to.include('hello.rs was not deployed within 1 s (--timeout)');
    } finally {
      await api.close();
      await folder.remove();
    }
  });
});
