/** Lists that can be long: searched, and read page by page. */
import { get, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { ONE_FILE } from '../../src/model/source-files.js';
import { addVersions } from '../../src/store/versions.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { call } from '../support/http.js';

interface Row {
  readonly id?: string;
  readonly name?: string;
  readonly version?: number;
}

describe('a list', () => {
  let api: TestApi;
  let endpointId: string;
  before(async () => {
    api = await startApi();
    for (let number = 1; number <= 7; number++) {
      const created = async (path: string, body: object) =>
        expectData<{ id: string }>(await api.post(path, body), 201).id;
      await created('/api/domains', { name: `Shop ${number}`, host: `shop-${number}.example` });
      await created('/api/services', {
        ...{ name: `Cache_${number}`, service_type: 'memcached', config: { servers: ['localhost:1'] } },
      });
      const code = `// ${number}`;
      const endpoint = { name: `E${number}%`, path: `/items/${number}`, method: 'GET', domain: '*', code };
      endpointId = await created('/api/endpoints', endpoint);
      await addVersions(api.store, [endpointId], sourceOf(1));
    }
    for (let number = 2; number <= 7; number++) await addVersions(api.store, [endpointId], sourceOf(number));
    for (let number = 1; number <= 7; number++) {
      await api.store.knex.raw(
        `INSERT INTO builds (source_key, code, dependencies, state, request_id)
         VALUES (?, '', '{}', 'failed', ?)`,
        [`key ${number}`, `request-${number}`],
      );
    }
  });
  after(() => api?.close());

  const sourceOf = (number: number) => ({
    ...{
      sourceKey: `key ${number}`,
      code: '',
      dependencies: {},
      ...ONE_FILE,
      artifact: `artifact ${number}`,
    },
    message: `change ${number}`,
    actor: null,
  });
  const LISTS: readonly (readonly [string, () => string, string, number])[] = [
    ['domains', () => '/api/domains', 'shop-3', 1],
    ['services', () => '/api/services', 'CACHE_', 7],
    ['endpoints', () => '/api/endpoints', '/ITEMS/5', 1],
    ['versions', () => `/api/endpoints/${endpointId}/versions`, 'change 4', 1],
    ['builds', () => '/api/builds', 'request-6', 1],
  ];

  const nextOf = (headers: Readonly<Record<string, unknown>>) =>
    /^<(.+)>; rel="next"$/.exec(String(headers['link'] ?? ''))?.[1];
  /** The rows of all pages, from a first one. */
  const pages = async (url: string) => {
    const sizes: number[] = [];
    const rows: Row[] = [];
    for (let next: string | undefined = url; next !== undefined; ) {
      const response = await api.get(next);
      const page = expectData<Row[]>(response);
      sizes.push(page.length);
      rows.push(...page);
      next = nextOf(response.headers);
    }
    return { rows, sizes };
  };

  for (const [name, url, search, found] of LISTS) {
    it(`the list of ${name} is read page by page`, async () => {
      const whole = await api.get(url());
      expect(nextOf(whole.headers)).to.equal(undefined);
      const all = expectData<Row[]>(whole);
      expect(all).to.have.length(7);
      for (const [limit, sizes] of [
        [3, [3, 3, 1]],
        [7, [7]],
        [1000, [7]],
      ] as const) {
        expect(await pages(`${url()}?limit=${limit}`), String(limit)).to.deep.equal({ rows: all, sizes });
      }
    });

    it(`the list of ${name} is searched`, async () => {
      const query = new URLSearchParams({ search });
      expect((await pages(`${url()}?${query}`)).rows).to.have.length(found);
      const { rows } = await pages(`${url()}?${query}&limit=2`);
      expect(rows).to.have.length(found);
      expect((await pages(`${url()}?search=nothing-has-this`)).rows).to.deep.equal([]);
    });
  }

  it('searches a list for the text itself, without wildcards', async () => {
    const names = async (search: string) =>
      (await pages(`/api/endpoints?${new URLSearchParams({ search })}`)).rows.map(({ name }) => name);
    expect(await names('E3%')).to.deep.equal(['E3%']);
    expect(await names('_3')).to.deep.equal([]);
    expect(await names("'; DROP TABLE endpoints; --")).to.deep.equal([]);
    expect(await names('\\')).to.deep.equal([]);
  });

  it('a list has the same pages while rows are added and deleted', async () => {
    const first = await api.get('/api/domains?limit=2&search=shop');
    const body = { name: 'Shop 8', host: 'shop-8.example' };
    const { id } = expectData<{ id: string }>(await api.post('/api/domains', body), 201);
    const [gone] = expectData<Row[]>(first);
    expectData(await api.delete(`/api/domains/${gone?.id}`));
    const names = (await pages(nextOf(first.headers) ?? '')).rows.map(({ name }) => name);
    expect(names).to.deep.equal(['Shop 3', 'Shop 4', 'Shop 5', 'Shop 6', 'Shop 7', 'Shop 8']);
    expectData(await api.delete(`/api/domains/${id}`));
  });

  it('the next page of a list keeps the filters of its query, and may have another size', async () => {
    const filtered = await api.get('/api/endpoints?limit=2&domain=*&enabled=true');
    const next = nextOf(filtered.headers) ?? '';
    expect(next).to.match(/^\/api\/endpoints\?limit=2&domain=\*&enabled=true&cursor=/);
    const larger = expectData<Row[]>(await api.get(next.replace('limit=2', 'limit=4')));
    expect(larger.map(({ name }) => name)).to.deep.equal(['E3%', 'E4%', 'E5%', 'E6%']);
  });

  it('one list with much code is made at a time, until it is sent, and small ones wait for none', async () => {
    const code = '// '.padEnd(2 ** 20, 'x');
    for (let number = 0; number < 24; number++) {
      const endpoint = {
        name: `Large ${number}`,
        path: `/large/${number}`,
        method: 'GET',
        domain: 'large.example',
      };
      expectData(await api.post('/api/endpoints', { ...endpoint, code }), 201);
    }
    const list = `${api.url}/api/endpoints?domain=large.example`;
    // Nobody reads it.
    const unread = await new Promise<IncomingMessage>((resolve, reject) => {
      get(list, resolve).once('error', reject);
    });
    let isAnswered = false;
    const next = call(list).then(({ status }) => {
      isAnswered = true;
      return status;
    });
    for (let count = 0; count < 100; count++) expectData(await api.get('/api/endpoints?limit=1'));
    expect(isAnswered).to.equal(false);
    unread.destroy();
    expect(await next).to.equal(200);
  });

  it('refuses a cursor of another list, and cursors that are not valid', async () => {
    const next = nextOf((await api.get('/api/domains?limit=2')).headers) ?? '';
    const cursor = new URL(next, 'http://api').searchParams.get('cursor') ?? '';
    for (const url of [
      `/api/domains?limit=2&search=shop&cursor=${cursor}`,
      `/api/services?limit=2&cursor=${cursor}`,
      `/api/endpoints?domain=*&cursor=${cursor}`,
    ]) {
      expectFailure(await api.get(url), 'invalid_input', /query\.cursor: is of another query/);
    }
    const forged = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url');
    const [digest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [string];
    for (const wrong of [
      ...['nonsense', 'W10', forged({}), forged([digest]), forged([digest, 'now', '1'])],
      ...[forged([digest, '2026-02-30 00:00:00+00', endpointId]), forged([digest, 'a\u0000', endpointId])],
      ...[forged([digest, '1; DROP TABLE domains', '1']), forged([digest, '2026-01-01 00:00:00+00', 'x'])],
    ]) {
      expectFailure(
        await api.get(`/api/domains?cursor=${wrong}`),
        'invalid_input',
        /query\.cursor: is no cursor/,
      );
    }
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'search=', 'cursor=', 'limit=1&limit=2'])
      expectFailure(await api.get(`/api/domains?${query}`), 'invalid_input', /query\./);
  });
});
