/** The sample of `npm run up`, and the client with which it is deployed. */
import { createServer } from 'node:http';
import { expect } from 'chai';
import { ApiClient, deploySample, isSampleMissing, samplePath } from '../../src/up/sample.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData } from '../support/expect.js';
import { freePort } from '../support/ports.js';

describe('the client of the management API', () => {
  it('repeats a failed GET until the restarted process answers, but no other call', async () => {
    const port = await freePort();
    const api = new ApiClient(`http://127.0.0.1:${port}`, undefined);
    const refused = await api.call('POST', '/api/domains', {}).catch(String);
    expect(refused).to.match(/POST \/api\/domains: no answer \(.*ECONNREFUSED/);

    const answer = api.get('/api/health');
    let count = 0;
    const server = createServer((_request, response) => {
      if (++count === 1) response.destroy();
      else response.writeHead(count === 2 ? 503 : 200).end(JSON.stringify({ ok: count > 2, data: 'health' }));
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      expect(await answer).to.equal('health');
      expect(count).to.equal(3);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

describe('the sample', () => {
  let api: TestApi;
  let client: ApiClient;
  before(async () => {
    api = await startApi({ config: { COMPILE_WAIT_MS: 100 } });
    client = new ApiClient(api.url, undefined);
  });
  after(() => api?.close());

  it('does not take an endpoint of somebody else for the sample of `npm run up`', async () => {
    expect(await isSampleMissing(client)).to.equal(true);
    const domain = expectData<{ id: string }>(
      await api.post('/api/domains', { name: 'Local', host: 'dev.example' }),
      201,
    );
    const own = {
      name: 'hello',
      path: '/hello/{name}',
      method: 'GET',
      domain: 'dev.example',
      code: '// mine',
    };
    const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', own), 201);
    expect(await isSampleMissing(client)).to.equal(false);
    expect(await samplePath(client)).to.equal(undefined);

    // Nothing compiles here: the sample itself has no more than its first build.
    await deploySample(client).catch(() => undefined);
    const builds = expectData<{ endpoints: { id: string }[] }[]>(await api.get('/api/builds'));
    expect(builds.flatMap(({ endpoints }) => endpoints.map((one) => one.id))).not.to.include(id);
    const collections = expectData<{ domain_id: string }[]>(await api.get('/api/collections'));
    expect(collections.map(({ domain_id }) => domain_id)).not.to.include(domain.id);
  });
});
