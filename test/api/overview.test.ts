/** Endpoints in brief, as pages show them, and the stream that tells which kinds of objects have changed. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type Figures, saveFigures } from '../../src/store/figures.js';
import { saveObservations } from '../../src/store/observations.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { addNode } from '../support/nodes.js';

interface Brief {
  readonly id: string;
  readonly route: string;
  readonly domain: string;
  readonly collection: string | null;
  readonly method: string;
}

describe('endpoints in brief', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
    for (const host of ['b.example', 'a.example']) {
      const { id: domain_id } = await created('/api/domains', { name: host, host });
      for (const name of ['two', 'one']) {
        const collection = await created('/api/collections', { domain_id, name, base_path: `/${name}` });
        for (const method of ['POST', 'GET'])
          await endpoint({ domain: host, collection_id: collection.id, method, path: '/x' });
      }
      await endpoint({ domain: host, path: '/z' });
    }
    await endpoint({ domain: '*', path: '/any' });
  });
  after(() => api.close());

  const created = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201);
  const endpoint = (body: object) => created('/api/endpoints', { name: 'named', method: 'GET', ...body });
  const list = async (query = '') => expectData<Brief[]>(await api.get(`/api/overview/endpoints${query}`));
  /** As if a live gateway had said so. */
  const serves = async (endpoint_id: string) => {
    const id = await addNode(api.store, 'gateway');
    await saveObservations(api.store, id, [
      { endpoint_id, state: 'running', revision: 1, serving: [], versions: [], error: null },
    ]);
  };
  const shown = ({ method, domain, collection, route }: Brief) =>
    `${method} ${domain} ${collection ?? '-'} ${route}`;

  const OF_A = [
    'GET a.example - /z',
    'GET a.example one /one/x',
    'POST a.example one /one/x',
    'GET a.example two /two/x',
    'POST a.example two /two/x',
  ];
  const ALL = ['GET * - /any', ...OF_A, ...OF_A.map((line) => line.replace('a.example', 'b.example'))];

  it('lists endpoints in brief by hosts, collections and routes, page by page', async () => {
    expect((await list()).map(shown)).to.deep.equal(ALL);
    const pages: string[] = [];
    let path: string | undefined = '/api/overview/endpoints?limit=4';
    while (path !== undefined) {
      const response = await api.get(path);
      pages.push(...expectData<Brief[]>(response).map(shown));
      path = /<([^>]+)>; rel="next"/.exec(response.headers['link']?.toString() ?? '')?.[1];
    }
    expect(pages).to.deep.equal(ALL);
  });

  it('finds endpoints in brief by host, by method and route as people write them, and by name', async () => {
    expect((await list('?domain=A.Example')).map(shown)).to.deep.equal(OF_A);
    expect((await list('?search=POST%20a.example%2Fone')).map(shown)).to.deep.equal([OF_A[2]]);
    expect(await list('?search=NAMED')).to.have.length(ALL.length);
    expect((await list('?search=two&domain=a.example')).map(shown)).to.deep.equal(OF_A.slice(3));
    expect(await list('?search=%25')).to.deep.equal([]);
    expect(await list('?failing=true')).to.deep.equal([]);
  });

  it('refuses invalid queries for endpoints in brief', async () => {
    for (const query of ['limit=0', 'cursor=x', 'failing=perhaps', 'search='])
      expectFailure(await api.get(`/api/overview/endpoints?${query}`), 'invalid_input');
    const { headers } = await api.get('/api/overview/endpoints?limit=1');
    const cursor = /cursor=([^>&]+)/.exec(headers['link']?.toString() ?? '')?.[1];
    expectFailure(await api.get(`/api/overview/endpoints?search=x&cursor=${cursor}`), 'invalid_input');
  });

  it('lists endpoints that have answered with errors within an hour as failing, the worst first', async () => {
    const [first, second, third] = await list();
    const NOTHING = {
      ...{ status_2xx: 0, status_3xx: 0, status_4xx: 0, status_5xx: 0, status_other: 0 },
      ...{ restarts: 0, cpu_seconds: 0, in_flight: 0, memory_bytes: 0, buckets: [], counts: [] },
    };
    const node = randomUUID();
    const add = (minutes: number, statuses: Partial<Figures>, id = first?.id ?? '') => {
      const at = (Math.floor(Date.now() / 60_000) - minutes) * 60_000;
      const figures = { ...NOTHING, endpoint_id: id, version: 1, at, ...statuses };
      return saveFigures(api.store, node, [figures]);
    };
    await add(2, { status_2xx: 3 });
    expect(await list('?failing=true')).to.deep.equal([]);
    await add(120, { status_5xx: 3 });
    expect(await list('?failing=true')).to.deep.equal([]);
    await add(3, { status_5xx: 3 });
    const [failing, ...others] = await list('?failing=true');
    expect(failing).to.include({ id: first?.id, requests: 6, serving_requests: 6, errors: 3 });
    expect(others).to.deep.equal([]);

    // Errors of a version that serves no more do not count; all do while nothing serves.
    const deploy = async (...versions: number[]) => {
      const targets = JSON.stringify(versions.map((version) => ({ version, percent: 50 })));
      const deployment = { kind: 'deploy', outcome: 'succeeded', request_id: 'test', revision: 1 };
      const [row] = await api.store
        .knex('deployments')
        .insert({ ...deployment, endpoint_id: first?.id, targets }, ['id']);
      await api.store.knex('endpoints').where({ id: first?.id }).update({ desired_deployment_id: row.id });
    };
    await deploy(2);
    expect(await list('?failing=true')).to.deep.equal([]);
    await add(1, { status_5xx: 1, status_2xx: 1, version: 2 });
    const [again] = await list('?failing=true');
    expect(again).to.include({ id: first?.id, requests: 8, serving_requests: 2, errors: 1 });
    await deploy(2, 1);
    expect((await list('?failing=true'))[0]).to.include({ serving_requests: 8, errors: 4 });
    await deploy();
    expect((await list('?failing=true'))[0]).to.include({ serving_requests: 8, errors: 4 });

    // The worst first, also from page to page: by the share of errors, then by their number.
    await add(3, { status_5xx: 2 }, second?.id);
    await add(3, { status_5xx: 40, status_2xx: 40 }, third?.id);
    const bySeverity = [second?.id, third?.id, first?.id];
    expect((await list('?failing=true')).map(({ id }) => id)).to.deep.equal(bySeverity);
    const { body, headers } = await api.get('/api/overview/endpoints?failing=true&limit=1');
    const next = /<([^>]+)>; rel="next"/.exec(headers['link']?.toString() ?? '')?.[1] ?? '';
    const pages = [...(body as { data: Brief[] }).data, ...expectData<Brief[]>(await api.get(next))];
    expect(pages.map(({ id }) => id)).to.deep.equal(bySeverity.slice(0, 2));

    // What does not serve is worse than all that does; new code that fails beside a version that serves is not failing.
    const { id: down } = await endpoint({ domain: '*', path: '/down' });
    await api.store.knex('endpoints').where({ id: down }).update({ status: 'error' });
    expect((await list('?failing=true')).map(({ id }) => id)).to.deep.equal([down, ...bySeverity]);
    await serves(down);
    expect((await list('?failing=true')).map(({ id }) => id)).to.deep.equal(bySeverity);
  });

  it('the stream of changes tells what changed just before it was opened, too', async () => {
    await endpoint({ path: '/just-before', domain: '*' });
    const leave = new AbortController();
    const response = await fetch(`${api.url}/api/events`, { signal: leave.signal });
    let text = '';
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      if (/event: (change|alive)\nid: 1\ndata: .*\n\n/.test(text)) break;
    }
    leave.abort();
    const [, data = '{}'] = /event: change\nid: 1\ndata: (.*)\n/.exec(text) ?? [];
    expect((JSON.parse(data) as { kinds?: string[] }).kinds).to.include.members(['change', 'endpoint']);
  });

  it('the stream of changes tells the kinds of objects that changed, and not which ones', async () => {
    const leave = new AbortController();
    const response = await fetch(`${api.url}/api/events`, { signal: leave.signal });
    expect(response.headers.get('content-type')).to.match(/^text\/event-stream/);
    const told = new Set<string>();
    const { id } = await endpoint({ path: '/later', domain: '*' });
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      const text = Buffer.from(chunk).toString();
      for (const [, data = '{}'] of text.matchAll(/event: change\nid: \d+\ndata: (.*)\n/g))
        for (const kind of (JSON.parse(data) as { kinds: string[] }).kinds) told.add(kind);
      // Which one it is, the stream does not tell: not all may see it.
      expect(text).not.to.include(id);
      if (told.has('change') && told.has('endpoint')) break;
    }
    leave.abort();
  });
});
