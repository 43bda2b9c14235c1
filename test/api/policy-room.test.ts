/** Every way to write policies is refused where a domain would have more of them than it may. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { askForPlan } from '../support/plans.js';

const HOST = 'full.example';
const KB = 1024;
const TOO_MUCH =
  'the policies of the domain "full.example" have more than 1 MiB together (POLICIES_OF_DOMAIN_MB)';

/** Headers of so many KiB. */
function policies(kilobytes: number) {
  const set = Object.fromEntries(
    Array.from({ length: kilobytes / 4 }, (_, at) => [`X-${at}`, 'x'.repeat(4000)]),
  );
  return { headers: { response: { set } } };
}

describe('a domain with nearly as many policies as it may have', () => {
  let api: TestApi;
  let domainId: string;
  let collectionId: string;
  let endpointId: string;
  before(async () => {
    api = await startApi({ config: { POLICIES_OF_DOMAIN_MB: 1 } });
    const create = async (path: string, body: object) =>
      expectData<{ id: string }>(await api.post(path, body), 201).id;
    domainId = await create('/api/domains', { name: 'full', host: HOST, policies: policies(60) });
    const collection = { domain_id: domainId, policies: policies(60) };
    collectionId = await create('/api/collections', { ...collection, name: 'c' });
    for (const name of ['d', 'e', 'f'])
      await create('/api/collections', { ...collection, name, policies: policies(240) });
    const endpoint = { name: 'e', path: '/e', method: 'GET', domain: HOST, policies: policies(120) };
    endpointId = await create('/api/endpoints', endpoint);
  });
  after(() => api.close());

  it('refuses further policies of a host, naming their place', async () => {
    const refused = (answer: Awaited<ReturnType<TestApi['post']>>, place = 'policies') => {
      expectFailure(answer, 'invalid_input');
      expect((answer.body as { error: string }).error).to.equal(`body.${place}: ${TOO_MUCH}`);
    };
    const more = { policies: policies(160) };
    const endpoint = { name: 'f', path: '/f', method: 'GET', domain: HOST };
    refused(await api.post('/api/endpoints', { ...endpoint, ...more }));
    refused(await api.post('/api/collections', { domain_id: domainId, name: 'g', ...more }));
    const larger = { policies: policies(240) };
    refused(await api.put(`/api/domains/${domainId}`, larger));
    refused(await api.put(`/api/collections/${collectionId}`, larger));
    refused(await api.put(`/api/endpoints/${endpointId}`, larger));
    const elsewhere = expectData<{ id: string }>(
      await api.post('/api/endpoints', { ...endpoint, domain: 'elsewhere.example', ...more }),
      201,
    );
    refused(await api.put(`/api/endpoints/${elsewhere.id}`, { domain: HOST }), 'domain');
  });

  it('takes what makes them smaller, and endpoints without policies', async () => {
    expectData(await api.put(`/api/endpoints/${endpointId}`, { policies: policies(116) }));
    expectData(await api.put(`/api/endpoints/${endpointId}`, { name: 'g' }));
    const endpoint = { name: 'h', path: '/h', method: 'GET', domain: HOST };
    expectData(await api.post('/api/endpoints', endpoint), 201);
  });

  it('refuses an apply whose policies have no room, naming file and line', async () => {
    const policy = JSON.stringify(policies(160));
    const file = `stack: s\nendpoints:\n  - {host: ${HOST}, method: GET, route: /i, policies: ${policy}}\n`;
    const answer = await askForPlan(api, { 'edge.yaml': file });
    expectFailure(answer, 'invalid_folder');
    expect((answer.body as { error: string }).error).to.include(
      `edge.yaml:3: endpoint "GET ${HOST}/i": policies: ${TOO_MUCH}`,
    );
  });

  it('refuses an import whose policies have no room', async () => {
    const schema = { type: 'string', const: 'x'.repeat(160 * KB) };
    const parameters = [{ in: 'query', name: 'a', schema }];
    const paths = { '/j': { get: { parameters, responses: { 200: { description: 'ok' } } } } };
    const spec = JSON.stringify({ openapi: '3.1.0', info: { title: 'J', version: '1' }, paths });
    const post = (query: string) => api.post(`/api/import/openapi${query}`, { spec, domain: HOST });
    for (const query of ['?validate=enforce', '?validate=enforce&dry_run=true']) {
      const answer = await post(query);
      expectFailure(answer, 'invalid_input');
      expect((answer.body as { error: string }).error).to.equal(`query.validate: ${TOO_MUCH}`);
    }
    expectData(await post('?dry_run=true'));
  });
});
