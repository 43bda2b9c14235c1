import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

describe('bindings', () => {
  let api: TestApi;
  let count = 0;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  async function createEndpoint(): Promise<string> {
    count += 1;
    const body = { name: 'E', path: `/p${count}`, method: 'GET', domain: '*' };
    return expectData<{ id: string }>(await api.post('/api/endpoints', body), 201).id;
  }

  async function createService(): Promise<string> {
    const body = { name: uniqueName('S'), service_type: 'sqlite', config: { path: 'a.db' } };
    return expectData<{ id: string }>(await api.post('/api/services', body), 201).id;
  }

  it('binds a service to an endpoint, lists the binding, and unbinds the service', async () => {
    const endpoint_id = await createEndpoint();
    const service_id = await createService();
    const path = `/api/endpoints/${endpoint_id}/services`;
    const bound = expectData<{ created_at: string }>(
      await api.post(path, { service_id, pool_id: 'main.db-1_x' }),
      201,
    );
    expect(bound).to.deep.equal({
      endpoint_id,
      service_id,
      pool_id: 'main.db-1_x',
      created_at: bound.created_at,
    });
    expect(bound.created_at).to.match(TIMESTAMP);
    expect(expectData(await api.get(path))).to.deep.equal([bound]);
    expect(expectData(await api.delete(`${path}/${service_id}`))).to.deep.equal({
      endpoint_id,
      service_id,
      unbound: true,
      pool_ids: ['main.db-1_x'],
    });
    expect(expectData(await api.get(path))).to.deep.equal([]);
    expectFailure(await api.delete(`${path}/${service_id}`), 'not_found', /is not bound/);
  });

  it('lists the endpoints that a service is bound to', async () => {
    const service_id = await createService();
    const path = `/api/services/${service_id}/endpoints`;
    expect(expectData(await api.get(path))).to.deep.equal([]);
    const [first, second] = [await createEndpoint(), await createEndpoint()];
    for (const [id, pool_id] of [
      [second, 'db'],
      [first, 'main'],
      [first, 'again'],
    ])
      expectData(await api.post(`/api/endpoints/${id}/services`, { service_id, pool_id }), 201);
    const shown = expectData<{ id: string; pool_id: string; path: string }[]>(await api.get(path));
    expect(shown.map(({ id, pool_id }) => [id, pool_id])).to.deep.equal([
      [first, 'again'],
      [first, 'main'],
      [second, 'db'],
    ]);
    expect(shown[2]).to.deep.equal({
      ...{
        id: second,
        name: 'E',
        method: 'GET',
        domain: '*',
        path: `/p${count}`,
        route: `/p${count}`,
        pool_id: 'db',
      },
    });
    expectFailure(await api.get(`/api/services/${NO_ID}/endpoints`), 'not_found');
  });

  it('binds one service under several names, and unbinds it from all', async () => {
    const endpointId = await createEndpoint();
    const service_id = await createService();
    const other = await createService();
    const path = `/api/endpoints/${endpointId}/services`;
    for (const pool_id of ['b', 'a']) expectData(await api.post(path, { service_id, pool_id }), 201);
    expectData(await api.post(path, { service_id: other, pool_id: 'other' }), 201);
    const unbound = expectData<{ pool_ids: string[] }>(await api.delete(`${path}/${service_id}`));
    expect(unbound.pool_ids).to.deep.equal(['a', 'b']);
    expect(expectData<object[]>(await api.get(path))).to.have.lengthOf(1);
  });

  it('refuses a second binding of the same name to an endpoint', async () => {
    const endpointId = await createEndpoint();
    const owner = await createService();
    const other = await createService();
    const path = `/api/endpoints/${endpointId}/services`;
    expectData(await api.post(path, { service_id: owner, pool_id: 'db' }), 201);
    for (const service_id of [owner, other]) {
      expectFailure(
        await api.post(path, { service_id, pool_id: 'db' }),
        'pool_id_taken',
        new RegExp(`${owner}.*"db"`),
      );
    }
    expect(expectData<object[]>(await api.get(path))).to.have.lengthOf(1);
    const elsewhere = `/api/endpoints/${await createEndpoint()}/services`;
    expectData(await api.post(elsewhere, { service_id: other, pool_id: 'db' }), 201);
  });

  it('deletes an endpoint with its bindings, and keeps the bound service', async () => {
    const endpointId = await createEndpoint();
    const service_id = await createService();
    const path = `/api/endpoints/${endpointId}/services`;
    expectData(await api.post(path, { service_id, pool_id: 'db' }), 201);
    expectData(await api.delete(`/api/endpoints/${endpointId}`));
    expectFailure(await api.get(path), 'not_found');
    expectData(await api.get(`/api/services/${service_id}`));
  });

  it('deletes a service with its bindings, and names their endpoints', async () => {
    const endpointId = await createEndpoint();
    const service_id = await createService();
    expectData(await api.post(`/api/endpoints/${endpointId}/services`, { service_id, pool_id: 'db' }), 201);
    const endpoint = expectData<{ method: string; domain: string; route: string }>(
      await api.get(`/api/endpoints/${endpointId}`),
    );
    const { body } = await api.delete(`/api/services/${service_id}`);
    const { method, domain, route } = endpoint;
    expect((body as { warnings: string[] }).warnings).to.deep.equal([
      `Endpoints were bound to it, whose calls of it fail from now on: ${method} ${domain}${route}`,
    ]);
    expect(expectData(await api.get(`/api/endpoints/${endpointId}/services`))).to.deep.equal([]);
  });

  it('refuses bindings with missing, invalid or unknown values', async () => {
    const endpointId = await createEndpoint();
    const service_id = await createService();
    const path = `/api/endpoints/${endpointId}/services`;
    const wrong: readonly [body: object, message: RegExp][] = [
      [{ pool_id: 'db' }, /^body\.service_id: is required/],
      [{ service_id }, /^body\.pool_id: is required/],
      [{ service_id: 'x', pool_id: 'db' }, /^body\.service_id: must be a UUID/],
      [{ service_id, pool_id: '' }, /^body\.pool_id: must be 1 to 64/],
      [{ service_id, pool_id: 'a b' }, /^body\.pool_id: must be 1 to 64/],
      [{ service_id, pool_id: 'x'.repeat(65) }, /^body\.pool_id: must be 1 to 64/],
      [{ service_id, pool_id: 1 }, /^body\.pool_id: must be a string/],
    ];
    for (const [body, message] of wrong) expectFailure(await api.post(path, body), 'invalid_input', message);
    const body = { service_id, pool_id: 'db' };
    expectFailure(await api.post(path, { ...body, service_id: NO_ID }), 'not_found', /^The service/);
    expectFailure(await api.post(`/api/endpoints/${NO_ID}/services`, body), 'not_found', /^The endpoint/);
    expectFailure(await api.post('/api/endpoints/x/services', body), 'invalid_input', /^path\.id/);
    expectFailure(await api.get('/api/endpoints/x/services'), 'invalid_input', /^path\.id/);
    expectFailure(await api.get(`/api/endpoints/${NO_ID}/services`), 'not_found', /^The endpoint/);
    expectFailure(await api.delete(`${path}/x`), 'invalid_input', /^path\.service_id/);
    expectFailure(
      await api.delete(`/api/endpoints/x/services/${service_id}`),
      'invalid_input',
      /^path\.endpoint_id/,
    );
    expectFailure(await api.delete(`${path}/${NO_ID}`), 'not_found', /^The service/);
    expectFailure(
      await api.delete(`/api/endpoints/${NO_ID}/services/${service_id}`),
      'not_found',
      /^The endpoint/,
    );
    expect(expectData(await api.get(path))).to.deep.equal([]);
  });
});
