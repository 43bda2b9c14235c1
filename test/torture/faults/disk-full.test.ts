/** The disks of DATA_DIR and of the artifact store are full while handlers are compiled and started. */
import { spawn } from 'node:child_process';
import { mkdir, open, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectFailure } from '../../support/expect.js';
import { mountSmallDisk, type SmallDisk } from '../../support/faults/small-disk.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { freePort } from '../../support/ports.js';
import { BUILD_CACHE, must, type Stack, startStack } from '../../support/processes.js';
import { tempDir } from '../../support/temp.js';

const NO_ROOM = /There is no room left on the disk/;

interface EndpointView {
  readonly status: string;
  readonly running: boolean;
}

describe('a full disk', function () {
  this.timeout(120_000);
  let stack: Stack;
  let data: SmallDisk;
  let store: SmallDisk;
  let created = 0;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      prepareData: async (folder) => {
        data = await mountSmallDisk(folder, 32);
        store = await mountSmallDisk(join(folder, 'artifacts'), 8);
        // What handlers are compiled against is prepared elsewhere; what a compile writes is not.
        await mkdir(join(folder, 'build'));
        await mkdir(join(BUILD_CACHE, 'sets'), { recursive: true });
        await symlink(join(BUILD_CACHE, 'sets'), join(folder, 'build', 'sets'));
        return async () => {
          await store.unmount();
          await data.unmount();
        };
      },
    });
    for (const name of ['worker', 'gateway'] as const)
      stack.processes
        .get(name)
        ?.logged.expectErrors(/build could not be carried out|handler could not be started/);
  });
  after(() => stack?.close());

  const create = async () => {
    const number = ++created;
    const path = `/full/${number}`;
    const endpoint = { name: path, path, method: 'GET', domain: '*', code: numbered(20_000 + number) };
    const { id } = (await must(stack.api.post('/api/endpoints', endpoint))) as { id: string };
    return { id, url: `${stack.gatewayUrl}${path}`, text: `${20_000 + number} ` };
  };
  const compile = (id: string) => stack.api.post(`/api/endpoints/${id}/compile`);
  const start = (id: string) => stack.api.post(`/api/endpoints/${id}/start`);
  const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;
  const filesIn = async (folder: string) => {
    const entries = await readdir(join(stack.dataDir, folder), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile() && entry.name !== 'filler').map(({ name }) => name);
  };

  const moments: readonly (readonly [what: string, disk: () => SmallDisk, leaveKb: number])[] = [
    ['when the source is written', () => data, 0],
    ['when the compiler writes', () => data, 64],
    ['when the executable is linked', () => data, 400],
    ['when the artifact is stored', () => store, 16],
  ];
  for (const [what, disk, leaveKb] of moments) {
    it(`reports a full disk ${what}, leaves no partial file, and compiles again with free space`, async () => {
      const endpoint = await create();
      await disk().fill(leaveKb);
      try {
        expectFailure(await compile(endpoint.id), 'no_disk_space', NO_ROOM);
        expect((await view(endpoint.id)).status, 'it is no fault of the handler').to.equal('created');
      } finally {
        await disk().clear();
      }
      // Artifacts are whole or not there, and nothing is left of the build.
      for (const name of await filesIn('artifacts')) expect(name).to.match(/^[0-9a-f]{64}$/);
      const scratch = (await readdir(join(stack.dataDir, 'build'))).find((name) =>
        name.startsWith('scratch-'),
      );
      expect(await filesIn(join('build', scratch ?? ''))).to.deep.equal([]);
      await must(compile(endpoint.id));
      await must(start(endpoint.id));
      expect((await call(endpoint.url)).text).to.equal(endpoint.text);
    });
  }

  it('reports a full disk when a gateway fetches an artifact, serves on, and starts it with free space', async () => {
    const running = await create();
    await must(compile(running.id));
    await must(start(running.id));
    const endpoint = await create();
    await must(compile(endpoint.id));
    await data.fill(16);
    try {
      expectFailure(await start(endpoint.id), 'handler_start_failed', /disk of the gateway .* is full/);
      expect((await call(running.url)).text).to.equal(running.text);
    } finally {
      await data.clear();
    }
    for (const name of await filesIn('handlers')) expect(name).to.match(/^[0-9a-f]{64}$/);
    await must(start(endpoint.id));
    expect((await call(endpoint.url)).text).to.equal(endpoint.text);
  });

  it('a gateway becomes ready on a full disk, and starts the desired handlers once there is free space', async () => {
    const endpoint = await create();
    await must(compile(endpoint.id));
    await must(start(endpoint.id));
    await stack.processes.get('gateway')?.end();
    await data.fill(0);
    try {
      const gateway = await stack.start('gateway');
      gateway.logged.expectErrors(/handler could not be started/);
      expect((await call(endpoint.url)).status).to.be.oneOf([200, 503]);
    } finally {
      await data.clear();
    }
    await eventually(async () => expect((await call(endpoint.url)).text).to.equal(endpoint.text));
  });

  it('web serves on when the disk of its log is full, and logs again once there is free space', async () => {
    const folder = await tempDir('full-log');
    const disk = await mountSmallDisk(folder.path, 1);
    const logFile = join(folder.path, 'web.log');
    const log = await open(logFile, 'a');
    const port = await freePort();
    const env = {
      ...process.env,
      DATABASE_URL: stack.databaseUrl,
      DATA_DIR: stack.dataDir,
      PORT: String(port),
    };
    const entry = fileURLToPath(new URL('../../../src/processes/web.js', import.meta.url));
    const web = spawn(process.execPath, [entry], {
      env: { ...env, LOG_LEVEL: 'debug' },
      stdio: ['ignore', log.fd, log.fd],
    });
    const ended = new Promise((resolve) => web.once('exit', (code) => resolve(code)));
    const health = () => call(`http://127.0.0.1:${port}/api/health`);
    try {
      await eventually(async () => expect((await health()).status).to.equal(200));
      await disk.fill(0);
      for (let at = 0; at < 50; at++) expect((await health()).status).to.equal(200);
      expect(web.exitCode).to.equal(null);
      await disk.clear();
      await eventually(async () => {
        const { headers } = await health();
        expect(await readFile(logFile, 'utf8')).to.include(String(headers['x-request-id']));
      });
    } finally {
      web.kill();
      expect(await ended).to.equal(0);
      await log.close();
      await disk.unmount();
      await folder.remove();
    }
  });
});
