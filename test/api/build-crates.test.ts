/** The crates that builds wait for, with a worker that only this test sees: what builds, imports and applies tell. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { announceCrates } from '../../src/store/build-crates.js';
import { updateNodeInfo } from '../../src/store/nodes.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { addNode } from '../support/nodes.js';

const SET = { crates: 7, of: 31, crate: 'reqwest', crate_seconds: 22, seconds: 40 };

describe('the crates that builds wait for', () => {
  let api: TestApi;
  let worker: string;
  let count = 0;

  before(async () => {
    api = await startApi({ config: { COMPILE_WAIT_MS: 1 } });
    worker = await addNode(api.store, 'worker');
  });
  after(() => api.close());

  /** A build that the worker has taken. */
  const running = async () => {
    const path = `/b${++count}`;
    const body = {
      name: path,
      path,
      method: 'GET',
      domain: '*',
      code: `// ${count}`,
      dependencies: { reqwest: '1' },
    };
    const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', body), 201);
    const waited = await api.post(`/api/endpoints/${id}/compile`);
    expectFailure(waited, 'wait_timeout');
    const { build_id: build } = (waited.body as { details: { build_id: string } }).details;
    expect(waited.headers.location).to.equal(`/api/builds/${build}`);
    await api.store.knex('builds').where({ id: build }).update({ state: 'running' });
    return build;
  };
  /** What the worker tells of itself. */
  const tell = (crates: readonly object[]) => updateNodeInfo(api.store, { id: worker, info: { crates } });
  const waiting = (builds: readonly string[]) => ({
    ...SET,
    builds: builds.map((id) => ({ id, endpoint: `of ${id}` })),
  });
  const cratesOf = async (build: string) =>
    expectData<{ crates: unknown }>(await api.get(`/api/builds/${build}`)).crates;

  it('are told of each build that runs, alone and in lists, and of no other', async () => {
    const [first, second] = [await running(), await running()];
    await tell([waiting([first])]);
    expect(await cratesOf(first)).to.deep.equal(SET);
    expect(await cratesOf(second)).to.equal(null);
    const list = expectData<{ id: string; crates: unknown }[]>(await api.get('/api/builds?state=running'));
    expect(list.find(({ id }) => id === first)).to.deep.include({ crates: SET });
    expect(list.find(({ id }) => id === second)).to.deep.include({ crates: null });
    await api.store.knex('builds').where({ id: first }).update({ state: 'failed' });
    expect(await cratesOf(first)).to.equal(null);
  });

  /** The first event `progress` that has crates, after something has happened. */
  const eventAfter = async (path: string, happens: () => Promise<void>) => {
    const leave = new AbortController();
    const response = await fetch(`${api.url}${path}`, { signal: leave.signal });
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    try {
      await eventually(() => expect(text).to.include('event: progress'));
      await happens();
      return await eventually(() => {
        const [, data = ''] = /^data: (.*"crate":"reqwest".*)$/m.exec(text) ?? [];
        return (JSON.parse(data) as { crates: unknown }).crates;
      });
    } finally {
      leave.abort();
      await reading;
    }
  };

  it('are told of the handlers of an import, and of an apply, as they get on', async () => {
    const [build, other] = [await running(), await running()];
    await tell([waiting([build, other])]);
    const [importId, applyId] = [randomUUID(), randomUUID()];
    const { knex } = api.store;
    const { request_id, endpoint_id } = await knex('builds')
      .join('endpoints', 'endpoints.build_id', 'builds.id')
      .where({ 'builds.id': build })
      .first('request_id', 'endpoints.id as endpoint_id');
    const owner = { request_id, actor: JSON.stringify({ kind: 'anonymous' }) };
    await knex('imports').insert({
      id: importId,
      title: 'Pets',
      outcome: '{}',
      request_id,
      compile: true,
      start: false,
      state: 'running',
    });
    await knex('import_handlers').insert({
      ...{ import_id: importId, endpoint_id, position: 0, name: 'hello', file: 'hello.rs' },
      ...{ state: 'compiling', build_id: build },
    });
    await knex('applies').insert({
      ...{ id: applyId, stack: 'shop', plan_hash: 'h', plan: '{"changes": []}', changes: '[]' },
      ...{ ...owner, state: 'compiling', rights: '{}', hosts: ['*'] },
    });
    for (const path of [`/api/imports/${importId}/events`, `/api/applies/${applyId}/events`])
      expect(await eventAfter(path, () => announceCrates(api.store, [build, other])), path).to.deep.equal([
        waiting([build]),
      ]);
  });
});
