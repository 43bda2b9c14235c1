/** What start and stop answer, with gateways that only tests see: rows of nodes and of what they observe. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { registerNode, removeNode } from '../../src/store/nodes.js';
import { type Observation, saveObservation } from '../../src/store/observations.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';

describe('start and stop with several gateways', () => {
  let api: TestApi;
  let count = 0;
  const nodes: string[] = [];

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());
  afterEach(async () => {
    for (const node of nodes.splice(0)) await removeNode(api.store, node);
  });

  const join = async () => {
    const id = randomUUID();
    await registerNode(api.store, { id, kind: 'gateway', hostname: 'h', pid: 1, info: {} });
    nodes.push(id);
    return id;
  };
  /** An endpoint with an artifact. */
  const create = async (artifact = 'a') => {
    const path = `/e${++count}`;
    const answer = await api.post('/api/endpoints', {
      name: path,
      path,
      method: 'GET',
      domain: '*',
      code: 'x',
    });
    const { id } = expectData<{ id: string }>(answer, 201);
    await api.store.knex('endpoints').where({ id }).update({ artifact, status: 'compiled' });
    return id;
  };
  const row = async (id: string) =>
    (await api.store.knex('endpoints').where({ id }).first()) as {
      desired_artifact: string | null;
      version: number;
      status: string;
      last_error: string | null;
    };
  /** Waits until it should run (or not), and returns the version to observe. */
  const desired = (id: string, artifact: string | null) =>
    eventually(async () => {
      const { desired_artifact, version } = await row(id);
      expect(desired_artifact).to.equal(artifact);
      return version;
    });
  const observe = (node_id: string, endpoint_id: string, seen: Partial<Observation> & { version: number }) =>
    saveObservation(api.store, {
      node_id,
      endpoint_id,
      state: 'running',
      artifact: 'a',
      pid: 42,
      error: null,
      ...seen,
    });
  const start = (id: string) => api.post(`/api/endpoints/${id}/start`);
  const stop = (id: string) => api.post(`/api/endpoints/${id}/stop`);

  it('waits for all gateways, and answers with the process of the oldest', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const answer = start(id);
    const version = await desired(id, 'a');
    await observe(second, id, { version, pid: 2 });
    await observe(first, id, { version, pid: 1 });
    expect(expectData(await answer)).to.deep.equal({ status: 'running', pid: 1 });
    expect((await row(id)).status).to.equal('running');
  });

  it('ignores earlier observations', async () => {
    const node = await join();
    const id = await create();
    const { version: before } = await row(id);
    await observe(node, id, {
      version: before,
      state: 'failed',
      error: 'an old failure',
      artifact: 'old',
      pid: null,
    });
    const answer = start(id);
    const version = await desired(id, 'a');
    await observe(node, id, { version, pid: 3 });
    expect(expectData(await answer)).to.deep.equal({ status: 'running', pid: 3 });
  });

  it('fails when one gateway cannot start it, and reverts to the previous artifact', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const running = start(id);
    const version = await desired(id, 'a');
    for (const node of [first, second]) await observe(node, id, { version });
    expectData(await running);

    await api.store.knex('endpoints').where({ id }).update({ artifact: 'b' });
    const answer = start(id);
    const next = await desired(id, 'b');
    await observe(first, id, { version: next, artifact: 'b' });
    await observe(second, id, {
      version: next,
      artifact: 'b',
      state: 'failed',
      pid: null,
      error: 'no such file',
    });
    expectFailure(await answer, 'handler_start_failed', /no such file/);
    const last_error = 'On the machine h: no such file';
    expect(await row(id)).to.include({ desired_artifact: 'a', status: 'error', last_error });
  });

  it('fails when the last gateway exits while it waits', async () => {
    const node = await join();
    const id = await create();
    const answer = start(id);
    await desired(id, 'a');
    await removeNode(api.store, node);
    expectFailure(await answer, 'no_gateway');
    expect(await row(id)).to.include({ desired_artifact: null, status: 'error' });
  });

  it('stops when all gateways have stopped it, or have left', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const starting = start(id);
    const version = await desired(id, 'a');
    for (const node of [first, second]) await observe(node, id, { version });
    expectData(await starting);

    const answer = stop(id);
    const next = await desired(id, null);
    await observe(first, id, { version: next, state: 'stopped', artifact: null, pid: null });
    await removeNode(api.store, second);
    expect(expectData(await answer)).to.deep.equal({ status: 'stopped' });
    expectFailure(await stop(id), 'endpoint_not_running');
  });

  it('answers 404 for what does not exist', async () => {
    await join();
    const none = '00000000-0000-4000-8000-000000000000';
    expectFailure(await start(none), 'not_found');
    expectFailure(await stop(none), 'not_found');
  });
});

describe('compile without a worker', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('fails at once, but is queued for a later worker when the request does not wait', async () => {
    const endpoint = { name: 'e', path: '/e', method: 'GET', domain: '*', code: 'fn handle() {}' };
    const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', endpoint), 201);
    expectFailure(await api.post(`/api/endpoints/${id}/compile`), 'no_worker');
    const headers = { prefer: 'respond-async' };
    const accepted = await api.post(`/api/endpoints/${id}/compile`, undefined, { headers });
    expect(accepted.status).to.equal(202);
    const build = expectData<{ state: string }>(await api.get(String(accepted.headers['location'])));
    expect(build.state).to.equal('queued');
    expect(expectData(await api.get(`/api/endpoints/${id}`))).to.include({
      status: 'created',
      last_error: null,
    });
  });
});
