/** What an endpoint tells of its failures, read from the log: over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { call } from '../support/http.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';

/** Answers well, also when a call of a service fails. */
const CALLS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let known = RedisPool::new("cache").get("key").is_ok();
    Response::ok(json!({ "known": known }))
}
handler_loop!(handle);
`;

interface Failures {
  readonly recent_errors: number;
  readonly last_failure: Readonly<Record<string, unknown>> | null;
}

describe('the failures of an endpoint', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  const failuresOf = async (id: string) => expectData<Failures>(await stack.api.get(`/api/endpoints/${id}`));
  const entriesOf = async (id: string) =>
    expectData<{ items: LogItem[] }>(await stack.api.get(`/api/endpoints/${id}/logs`)).items;

  it('counts a failed call of a service as a failure of the endpoint although it answered 200', async () => {
    const id = await stack.deploy({ path: '/calls', code: CALLS });
    expect(await failuresOf(id)).to.include({ recent_errors: 0, last_failure: null });
    const { status, headers } = await call(`${stack.gatewayUrl}/calls`);
    expect(status).to.equal(200);
    await eventually(async () => expect((await failuresOf(id)).recent_errors).to.equal(1));
    const { last_failure } = await failuresOf(id);
    expect(last_failure).to.include({ version: 1, request_id: headers['x-request-id'], place: null });
    expect(last_failure?.['message']).to.match(/^The call \S+ of the pool "cache" has failed: \S/);
  });

  it('does not count requests to an endpoint that was never started as its failures', async () => {
    const endpoint = { name: 'N', path: '/never-started', method: 'GET', domain: '*' };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', endpoint), 201);
    await eventually(async () =>
      expect((await call(`${stack.gatewayUrl}/never-started`)).status).to.equal(503),
    );
    await eventually(async () => expect((await entriesOf(id)).length).to.equal(1));
    expect((await entriesOf(id))[0]).to.include({ level: 'error', status: 503 });
    expect(await failuresOf(id)).to.include({ recent_errors: 0, last_failure: null });
  });
});
