/** Bodies of requests that would hold up the event loop: they are refused before anything goes into their depth. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

describe('bodies of requests with much in them', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('refuses a body with very many values, whoever sends it, and takes a text of many commas', async () => {
    const many = `{"email":[${'[],'.repeat(60_000)}[]]}`;
    expectFailure(await api.post('/api/session', many), 'invalid_input', /body: has more than 50000 values/);
    const code = `// ${'\\"[{,'.repeat(60_000)}\\\\`;
    const text = JSON.stringify({ name: 'A', path: '/many-commas', method: 'GET', domain: '*', code });
    const { id, code: stored } = expectData<{ id: string; code: string }>(
      await api.post('/api/endpoints', text),
      201,
    );
    expect(stored).to.equal(code);
    expectData(await api.delete(`/api/endpoints/${id}`));
  });

  it('refuses policies that are too deep, or have too many values', async () => {
    const deep = `${'{"items":'.repeat(5_000)}{}${'}'.repeat(5_000)}`;
    const properties = Object.fromEntries(Array.from({ length: 21_000 }, (_, at) => [`m${at}`, true]));
    for (const [schema, message] of [
      [deep, /body\.policies\..*nested more than 100 levels deep/],
      [JSON.stringify({ type: 'object', properties }), /body\.policies: has more than 20000 values/],
    ] as const) {
      const validate = `{"mode":"enforce","body":{"content":{"application/json":{"schema":${schema}}}}}`;
      const body = `{"name":"A","host":"deep.example","policies":{"validate":${validate}}}`;
      expectFailure(await api.post('/api/domains', body), 'invalid_input', message);
    }
  });
});
