/** The first start: workers compile the real SDK, into a folder in which there is nothing yet. */
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Preparation } from '../../../src/model/preparation.js';
import { edge } from '../../support/edge.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { must, type Stack, startStack, type TestProcess } from '../../support/processes.js';

const HELLO = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response { Response::no_content() }
handler_loop!(handle);
`;
const LIMIT_MS = 900_000;
/** Shorter than the SDK takes: requests are answered before it is there. */
const COMPILE_WAIT_MS = 2_000;
/** Crates that were just compiled when the worker was killed may not have been recorded yet. */
const UNRECORDED = 2;

describe('the first start', function () {
  this.timeout(LIMIT_MS);
  let stack: Stack;
  let second: TestProcess | undefined;

  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { COMPILE_WAIT_MS: String(COMPILE_WAIT_MS) },
      prepareData: async (folder) => {
        await mkdir(join(folder, 'build'));
        return async () => undefined;
      },
    });
  });
  after(async () => {
    await second?.end();
    await stack.close();
  });

  const preparing = async () =>
    ((await must(stack.api.get('/api/health'))) as { preparing: Preparation[] }).preparing;
  const createEndpoint = async () => {
    const body = { name: 'hello', path: '/hello', method: 'GET', domain: '*', code: HELLO };
    return ((await must(stack.api.post('/api/endpoints', body))) as { id: string }).id;
  };
  const deployWithEdge = async () => {
    const folder = join(stack.dataDir, 'shop');
    const env = { XDG_CONFIG_HOME: folder, EDGE_URL: stack.apiUrl };
    expect((await edge(['init', folder], { env })).code).to.equal(0);
    await writeFile(join(folder, 'src/hello.rs'), HELLO);
    return edge(['deploy', folder], { env });
  };
  const sets = () => join(stack.dataDir, 'build', 'sets');
  /** The libraries of the SDK's set, with the inodes and times of their files. */
  const libraries = async () => {
    const [set = '', ...others] = (await readdir(sets())).filter((name) => /(^|-)sync-/.test(name));
    expect(others).to.deep.equal([]);
    const folder = join(sets(), set, 'target', 'release', 'deps');
    const names = (await readdir(folder)).filter((name) => /\.(rlib|so)$/.test(name));
    const files = names.map(async (name) => {
      const { ino, mtimeMs } = await stat(join(folder, name));
      return `${name} ${ino} ${mtimeMs}`;
    });
    return Promise.all(files);
  };

  it('a second worker continues the compile of the SDK when the first is killed, while edge deploy waits', async () => {
    await eventually(async () => {
      const [sdk] = await preparing();
      expect(sdk).to.include({ what: 'Rust SDK', problem: null });
      expect(sdk?.of).to.be.above(10);
      expect(sdk?.crates).to.be.above(4);
    }, LIMIT_MS);
    second = stack.launch('worker');
    await second.ready;
    await eventually(async () => expect((await preparing()).map(({ of }) => of === null)).to.include(true));

    const id = await createEndpoint();
    const answer = await stack.api.post(`/api/endpoints/${id}/compile`, undefined, {
      headers: { prefer: 'respond-async' },
    });
    const accepted = expectData<{ status: string; preparing: Preparation[] }>(answer, 202);
    expect(accepted.preparing[0]).to.include({ what: 'Rust SDK' });

    const [sdk] = await preparing();
    await stack.processes.get('worker')?.end('SIGKILL');
    // The second worker may rename the folder meanwhile.
    const kept = await eventually(libraries);
    const deployed = await deployWithEdge();
    expect(deployed.code, deployed.stderr).to.equal(0);
    expect(deployed.stderr).to.match(/A worker prepares the Rust SDK.*: \d+ of \d+ crates/);
    expect(deployed.stdout).to.include('version 1 serves');
    expect(await must(stack.api.post(`/api/endpoints/${id}/compile`))).to.include({ status: 'compiled' });
    const reused = (await libraries()).filter((library) => kept.includes(library));
    expect(reused.length).to.be.at.least((sdk?.crates ?? 0) - UNRECORDED);
  });
});
