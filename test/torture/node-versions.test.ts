/** Every version of Node that is supported runs all of the product, its native modules among it. */
import { execFileSync } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { expect } from 'chai';
import { createClient } from '../support/client.js';
import { EDGE } from '../support/edge.js';
import { deployExample } from '../support/examples.js';
import { descendantsOf } from '../support/process-state.js';
import { NODE_VERSIONS, nodeProgram } from '../support/server-cache.js';
import { activeService } from '../support/test-services.js';
import { BUILT_UP, START_LIMIT_MS, type UpSite, upSite } from '../support/up.js';

const ENTRIES = ['postgres', 'worker', 'web', 'gateway', 'actor-host'];

describe('up, compile, call', function () {
  this.timeout(START_LIMIT_MS + 120_000);
  let site: UpSite;

  beforeEach(async () => {
    site = await upSite();
  });
  afterEach(() => site.remove());

  for (const version of NODE_VERSIONS) {
    it(`starts, compiles and serves with Node ${version}`, async () => {
      const node = await realpath(nodeProgram(version));
      expect(execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()).to.equal(`v${version}`);
      const up = site.run(node, [BUILT_UP]);
      await up.curl();
      const all = descendantsOf(up.pid);
      for (const entry of ENTRIES) {
        const { command } = all.find((child) => child.command.includes(`/${entry}.js`)) ?? {};
        expect(command, entry).to.satisfy((text = '') => text.startsWith(`${node} `));
      }

      const api = createClient(`http://127.0.0.1:${site.port}`);
      await deployExample(api, 'db-sqlite', (type) =>
        activeService(api, type, { path: 'visits.db', create_if_missing: true }),
      );
      const { status, body } = await createClient(`http://127.0.0.1:${site.gatewayPort}`).post(
        '/visits/home',
      );
      expect(status, JSON.stringify(body)).to.equal(200);
      expect(body).to.deep.equal({ page: 'home', visits: 1 });

      const env = {
        ...process.env,
        XDG_CONFIG_HOME: site.dataDir,
        EDGE_URL: `http://127.0.0.1:${site.port}`,
      };
      const said = execFileSync(node, [EDGE, 'endpoint', 'list'], { env, encoding: 'utf8' });
      expect(said).to.match(/visits +POST +\/visits\/\{page\} +running/);

      up.interrupt('SIGINT');
      expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
      // Warnings of Node itself, for example of deprecated functions.
      expect(up.output()).not.to.match(/\(node:\d+\)/);
      await site.expectNothingLeft([up.pid, ...all.map(({ pid }) => pid)]);
    });
  }
});
