/** What start and stop answer, with gateways that only tests see: rows of nodes and of what they observe. */
import { expect } from 'chai';
import { removeNode } from '../../src/store/nodes.js';
import { type Observation, saveObservations } from '../../src/store/observations.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { addNode } from '../support/nodes.js';

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
    const id = await addNode(api.store, 'gateway');
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
    await api.store
      .knex('endpoints')
      .where({ id })
      .update({ artifact, latest_version: 1, status: 'compiled' });
    return id;
  };
  const row = async (id: string) =>
    (await api.store
      .knex('endpoints')
      .leftJoin('deployments', 'deployments.id', 'desired_deployment_id')
      .where({ 'endpoints.id': id })
      .first(
        'status',
        'last_error',
        'endpoints.version as revision',
        api.store.knex.raw("targets->0->>'artifact' AS desired"),
      )) as {
      desired: string | null;
      revision: number;
      status: string;
      last_error: string | null;
    };
  /** Waits until it should run (or not), and returns the revision to observe. */
  const desired = (id: string, artifact: string | null) =>
    eventually(async () => {
      const { desired, revision } = await row(id);
      expect(desired).to.equal(artifact);
      return revision;
    });
  const observe = (node_id: string, endpoint_id: string, seen: Partial<Observation> & { revision: number }) =>
    saveObservations(api.store, node_id, [
      {
        endpoint_id,
        state: 'running',
        serving: [{ version: 1, pid: 42 }],
        versions: [],
        error: null,
        ...seen,
      },
    ]);
  const start = (id: string) => api.post(`/api/endpoints/${id}/start`);
  const stop = (id: string) => api.post(`/api/endpoints/${id}/stop`);

  it('a start waits for all gateways, and answers with the process of the oldest', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const answer = start(id);
    const revision = await desired(id, 'a');
    await observe(second, id, { revision, serving: [{ version: 1, pid: 2 }] });
    await observe(first, id, { revision, serving: [{ version: 1, pid: 1 }] });
    expect(expectData(await answer)).to.deep.equal({ status: 'running', pid: 1 });
    expect((await row(id)).status).to.equal('running');
  });

  it('a start ignores observations of earlier revisions', async () => {
    const node = await join();
    const id = await create();
    const { revision: before } = await row(id);
    await observe(node, id, {
      revision: before,
      state: 'failed',
      error: 'an old failure',
      serving: [],
    });
    const answer = start(id);
    const revision = await desired(id, 'a');
    await observe(node, id, { revision, serving: [{ version: 1, pid: 3 }] });
    expect(expectData(await answer)).to.deep.equal({ status: 'running', pid: 3 });
  });

  it('a start fails when one gateway fails, and reverts to the previous artifact', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const running = start(id);
    const revision = await desired(id, 'a');
    for (const node of [first, second]) await observe(node, id, { revision });
    expectData(await running);

    await api.store.knex('endpoints').where({ id }).update({ artifact: 'b', latest_version: 2 });
    const answer = start(id);
    const next = await desired(id, 'b');
    await observe(first, id, { revision: next, serving: [{ version: 2, pid: 43 }] });
    await observe(second, id, {
      revision: next,
      state: 'failed',
      serving: [],
      error: 'no such file',
    });
    expectFailure(await answer, 'handler_start_failed', /no such file/);
    const last_error = 'On the machine elsewhere: no such file';
    expect(await row(id)).to.include({ desired: 'a', status: 'error', last_error });
  });

  it('a start fails when the last gateway exits while it waits', async () => {
    const node = await join();
    const id = await create();
    const answer = start(id);
    await desired(id, 'a');
    await removeNode(api.store, node);
    expectFailure(await answer, 'no_gateway');
    expect(await row(id)).to.include({ desired: null, status: 'error' });
  });

  it('a stop ends when all gateways have stopped the endpoint, or have left', async () => {
    const [first, second] = [await join(), await join()];
    const id = await create();
    const starting = start(id);
    const revision = await desired(id, 'a');
    for (const node of [first, second]) await observe(node, id, { revision });
    expectData(await starting);

    const answer = stop(id);
    const next = await desired(id, null);
    await observe(first, id, { revision: next, state: 'stopped', serving: [] });
    await removeNode(api.store, second);
    expect(expectData(await answer)).to.deep.equal({ status: 'stopped' });
    expectFailure(await stop(id), 'endpoint_not_running');
  });

  it('warns of a change that is not in force on all gateways in time', async () => {
    const node = await join();
    const host = 'slow-gateway.example';
    const { id: domainId } = expectData<{ id: string }>(
      await api.post('/api/domains', { name: 'D', host }),
      201,
    );
    const id = await create();
    expectData(await api.put(`/api/endpoints/${id}`, { domain: host }));
    const starting = start(id);
    await observe(node, id, { revision: await desired(id, 'a') });
    expectData(await starting);
    const changes = [
      api.put(`/api/domains/${domainId}`, { host: 'renamed.example' }),
      api.put(`/api/endpoints/${id}/variables`, { A: 'b' }),
      api.put(`/api/endpoints/${id}/secrets/C`, { value: 'd' }),
    ];
    for (const answer of await Promise.all(changes)) {
      expectData(answer);
      expect((answer.body as { warnings?: string[] }).warnings?.[0]).to.match(/not all gateways/);
    }
    const deleting = api.delete(`/api/endpoints/${id}/secrets/C`);
    await eventually(async () =>
      expect(expectData(await api.get(`/api/endpoints/${id}/secrets`))).to.deep.equal([]),
    );
    await observe(node, id, { revision: (await row(id)).revision });
    expect((await deleting).body).not.to.have.property('warnings');
  }).timeout(30_000);

  it('answers 404 to a start or stop of an endpoint that does not exist', async () => {
    await join();
    const none = '00000000-0000-4000-8000-000000000000';
    expectFailure(await start(none), 'not_found');
    expectFailure(await stop(none), 'not_found');
  });
});

describe('what a gateway observes', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('leaves out what a gateway observes of an endpoint that is deleted meanwhile', async () => {
    const node = await addNode(api.store, 'gateway');
    const create = async (path: string) =>
      expectData<{ id: string }>(
        await api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }),
        201,
      ).id;
    const [kept, deleted] = [await create('/kept'), await create('/deleted')];
    const state = { state: 'running', revision: 1, serving: [], versions: [], error: null } as const;
    const saving = await api.store.knex.transaction(async (tx) => {
      await tx('endpoints').where({ id: deleted }).delete();
      const saving = saveObservations(api.store, node, [
        { endpoint_id: kept, ...state },
        { endpoint_id: deleted, ...state },
      ]);
      // It waits for this transaction.
      await eventually(async () => {
        const { rows } = await api.store.knex.raw<{ rows: object[] }>(
          `SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO observations%'`,
        );
        expect(rows).to.have.length(1);
      });
      return { saving };
    });
    await saving.saving;
    const observed = await api.store.knex('observations').where({ node_id: node }).pluck('endpoint_id');
    expect(observed).to.deep.equal([kept]);
    await removeNode(api.store, node);
  });
});

describe('compile without a worker', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('a compile without a worker fails at once, but is queued when the request does not wait', async () => {
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
