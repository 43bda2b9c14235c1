import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { must, type Stack, startStack } from '../support/processes.js';

const HELLO = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    Response::ok(json!({ "hello": req.path_param("name") }))
}
handler_loop!(handle);
`;

describe('from source to a live endpoint', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  it('creates, compiles, starts, calls, stops and deletes an endpoint', async () => {
    const { api, gateway } = stack;
    const created = (await must(
      api.post('/api/endpoints', {
        name: 'hello',
        path: '/hello/{name}',
        method: 'GET',
        domain: '*',
        code: HELLO,
      }),
    )) as { id: string; status: string };
    expect(created.status).to.equal('created');
    await eventually(async () => expect((await gateway.get('/hello/ada')).status).to.equal(503));

    const compiled = await must(api.post(`/api/endpoints/${created.id}/compile`));
    expect(compiled).to.include({ status: 'compiled', cached: false });
    const started = (await must(api.post(`/api/endpoints/${created.id}/start`))) as { pid: number };
    expect(started).to.include({ status: 'running' });
    expect(started.pid).to.be.a('number');

    const answer = await gateway.get('/hello/ada');
    expect(answer.status).to.equal(200);
    expect(answer.body).to.deep.equal({ hello: 'ada' });
    expect(answer.headers['x-request-id']).to.match(/^[\w-]+$/);

    expect(await must(api.post(`/api/endpoints/${created.id}/stop`))).to.deep.equal({ status: 'stopped' });
    expect((await gateway.get('/hello/ada')).status).to.equal(503);
    expect((await api.delete(`/api/endpoints/${created.id}`)).status).to.equal(200);
  });

  it('warns of pools that the code of an endpoint names and to which no service is bound', async () => {
    const { api } = stack;
    const code = HELLO.replace('fn handle', 'fn _unused() { let _ = RedisPool::new("cache-7"); }\nfn handle');
    const body = { name: 'pools', path: '/pools', method: 'GET', domain: '*', code };
    const { id } = (await must(api.post('/api/endpoints', body))) as { id: string };
    const steps = ['compile', 'start', 'deploy'].map((step) => `/api/endpoints/${id}/${step}`);
    const warningsOf = async (step: string) =>
      ((await api.post(step)).body as { warnings?: readonly string[] }).warnings ?? [];
    for (const step of steps) {
      const [warning, ...others] = await warningsOf(step);
      expect(warning, step).to.match(/^The code names the pool "cache-7", under which no service is bound/);
      expect(others, step).to.deep.equal([]);
    }
    const service = { name: 'C', service_type: 'redis', config: { host: 'localhost' } };
    const created = (await must(api.post('/api/services', service))) as { id: string };
    await must(api.post(`/api/endpoints/${id}/services`, { service_id: created.id, pool_id: 'cache-7' }));
    for (const step of steps) expect(await warningsOf(step), step).to.deep.equal([]);
  });
});
