/** Nobody waits for one who has much to do: what is scarce is shared by domain, over HTTP with real processes. */
import { expect } from 'chai';
import { type ApplyShown, applyFiles, type Files, folderOf, holdRow, showApply } from '../support/applies.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { numbered, slowToCompile } from '../support/handler-sources.js';
import { descendantsOf } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

/** Answers when it is told to, or never. */
const WAITS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    while req.path != "/quick" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Response::no_content()
}
handler_loop!(handle);
`;
const GREEDY = 'greedy.example';
const MODEST = 'modest.example';
/** More than a worker with one compiler takes from its queue. */
const BUILDS = 20;
/** More than gateways try at a time, and let wait of one domain. */
const TRIALS = 40;
/** More than a worker sends at a time. */
const REQUESTS = 40;
const ASYNC = { prefer: 'respond-async' };

describe('domains that share a machine', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    // What greedy asks for does not end by itself.
    const env = {
      ...{ WORKER_CONCURRENCY: '1', BUILDS_QUEUED_LIMIT: String(BUILDS) },
      REQUEST_TIMEOUT_MS: '600000',
    };
    stack = await startStack({ env });
    for (const host of [GREEDY, MODEST]) await must(stack.api.post('/api/domains', { name: host, host }));
  });
  after(() => stack?.close());

  const create = async (domain: string, path: string, code: string) => {
    const endpoint = { name: path, path, method: 'GET', domain, code };
    return ((await must(stack.api.post('/api/endpoints', endpoint))) as { id: string }).id;
  };
  const compile = (id: string, headers: Record<string, string> = {}) =>
    stack.api.post(`/api/endpoints/${id}/compile`, undefined, { headers });
  const ended = (path: string) =>
    eventually(
      async () => expect(await must(stack.api.get(path))).to.have.property('finished_at').that.is.ok,
      30_000,
    );

  it('a domain is compiled for while another has more endless builds than there are places', async () => {
    const builds: string[] = [];
    for (let number = 0; number < BUILDS; number++) {
      // It does not end in the life of this test.
      const id = await create(GREEDY, `/endless/${number}`, slowToCompile(1_000_000_000_000, number));
      const { build_id } = (await must(compile(id, { ...ASYNC }))) as { build_id: string };
      builds.push(build_id);
    }
    const states = async () => {
      const all = await Promise.all(builds.map(async (id) => must(stack.api.get(`/api/builds/${id}`))));
      return all.map((build) => (build as { state: string }).state);
    };
    await eventually(async () => {
      const running = (await states()).filter((state) => state === 'running');
      expect(running).to.have.length(16);
    }, 30_000);
    const more = await create(GREEDY, '/more', slowToCompile(1_000_000_000_000, BUILDS));
    expectFailure(await compile(more), 'queue_full', /greedy\.example.*20 builds.*BUILDS_QUEUED_LIMIT/);
    for (const number of [1, 2]) {
      const id = await create(MODEST, `/small/${number}`, `${numbered(number)}// of another domain\n`);
      expect(await must(compile(id))).to.include({ status: 'compiled' });
    }
    expect(await states()).not.to.include.oneOf(['succeeded', 'failed']);
    for (const id of builds) await must(stack.api.post(`/api/builds/${id}/cancel`));
  });

  it('an apply is done while another one compiles, and one that does not wait is refused with what is before it', async () => {
    const endless = folderOf('endless', GREEDY, [
      { route: '/x', code: slowToCompile(1_000_000_000_000, BUILDS + 1) },
    ]);
    const { id } = expectData<ApplyShown>(await applyFiles(stack.api, endless, '&adopt=true', ASYNC), 202);
    await eventually(async () => expect(await showApply(stack.api, id)).to.include({ state: 'compiling' }));
    const other = folderOf('modest', MODEST, [{ route: '/x', code: `${numbered(3)}// of an apply\n` }]);
    const applied = expectData<ApplyShown>(await applyFiles(stack.api, other, '&adopt=true&no_wait=true'));
    expect(applied).to.include({ state: 'succeeded' });
    const again = await applyFiles(stack.api, endless, '&adopt=true&no_wait=true');
    expectFailure(again, 'apply_busy', new RegExp(`GET /api/applies/${id}`));
    const [build] = expectData<{ id: string }[]>(await stack.api.get('/api/builds?state=running'));
    await must(stack.api.post(`/api/builds/${build?.id}/cancel`));
    await eventually(async () =>
      expect(await showApply(stack.api, id)).to.include({ error_code: 'build_cancelled' }),
    );
  });

  it('an apply waits for its turn, and tells what is before it', async () => {
    const held = folderOf('held', 'held.example', [{ route: '/held', code: null }]);
    expectData(await applyFiles(stack.api, held));
    const [endpoint] = expectData<{ id: string }[]>(await stack.api.get('/api/endpoints?search=/held'));
    const row = await holdRow(stack.databaseUrl, endpoint?.id ?? '');
    const changed = folderOf('held', 'held.example', [
      { route: '/held', code: null, description: 'changed' },
    ]);
    const start = async (files: Files) =>
      expectData<ApplyShown>(await applyFiles(stack.api, files, '', ASYNC), 202).id;
    const first = await start(changed);
    await eventually(async () =>
      expect(await showApply(stack.api, first)).to.include({ state: 'committing' }),
    );
    const folder = (name: string) => folderOf(name, `${name}.example`, [{ route: '/x', code: null }]);
    const second = await start(folder('second'));
    await eventually(async () => {
      const { state, progress, earlier } = await showApply(stack.api, second);
      expect({ state, ...progress['earlier'] }).to.deep.equal({ state: 'waiting', done: 0, of: 1 });
      expect(earlier.map(({ id, stack: name }) => [id, name])).to.deep.equal([[first, 'held']]);
    });
    const third = await start(folder('third'));
    await eventually(async () => expect(await showApply(stack.api, third)).to.include({ state: 'waiting' }));
    expect((await showApply(stack.api, third)).earlier.map(({ id }) => id)).to.deep.equal([first, second]);
    expectFailure(
      await applyFiles(stack.api, folder('fourth'), '&no_wait=true'),
      'apply_busy',
      new RegExp(first),
    );
    await row.release();
    for (const id of [first, second, third])
      await eventually(
        async () => expect(await showApply(stack.api, id)).to.include({ state: 'succeeded' }),
        30_000,
      );
    const at = async (id: string) => Date.parse((await showApply(stack.api, id)).committed_at ?? '');
    expect(await at(first)).to.be.lessThan(await at(second));
    expect(await at(second)).to.be.lessThan(await at(third));
  });

  it('a domain tries a version, and has a queued request sent, while another waits for its own', async () => {
    const greedy = await create(GREEDY, '/{what}', WAITS);
    const modest = await create(MODEST, '/{what}', WAITS);
    for (const id of [greedy, modest]) {
      await must(compile(id));
      await must(stack.api.post(`/api/endpoints/${id}/start`));
    }
    for (let number = 0; number < REQUESTS; number++)
      await must(stack.api.post(`/api/endpoints/${greedy}/enqueue`, { path: '/slow', attempts: 1 }));
    const givenUp = new AbortController();
    const trials = Array.from({ length: TRIALS }, () => invoke(greedy, '/slow', givenUp.signal));
    const refused = await Promise.any(trials);
    expect(refused).to.have.property('status', 503);
    expect(refused.text).to.include('greedy.example');

    const { job_id } = (await must(
      stack.api.post(`/api/endpoints/${modest}/enqueue`, { path: '/quick', attempts: 1 }),
    )) as { job_id: string };
    expect(await invoke(modest, '/quick')).to.have.property('status', 200);
    await ended(`/api/jobs/${job_id}`);
    expect(await must(stack.api.get(`/api/jobs/${job_id}`))).to.include({
      state: 'succeeded',
      last_status: 204,
    });

    givenUp.abort();
    await Promise.allSettled(trials);
    const sent = (await must(stack.api.get(`/api/endpoints/${greedy}/jobs`))) as {
      finished_at: string | null;
    }[];
    expect(sent.filter(({ finished_at }) => finished_at !== null)).to.have.length(0);
    // Handlers, also those that are tried, would be given the time to answer.
    const { pid } = (await must(stack.api.get(`/api/endpoints/${greedy}`))) as { pid: number };
    await must(stack.api.delete(`/api/endpoints/${greedy}`));
    const children = () => descendantsOf(stack.processes.get('gateway')?.pid ?? 0);
    const command = children().find((child) => child.pid === pid)?.command;
    await eventually(() => {
      const handlers = children().filter((child) => child.command === command);
      for (const handler of handlers) process.kill(handler.pid, 'SIGKILL');
      expect(handlers).to.have.length(0);
    });
  });

  async function invoke(id: string, path: string, signal: AbortSignal | null = null) {
    const response = await fetch(`${stack.apiUrl}/api/endpoints/${id}/invoke`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, signal },
      body: JSON.stringify({ path }),
    });
    return { status: response.status, text: await response.text() };
  }
});
