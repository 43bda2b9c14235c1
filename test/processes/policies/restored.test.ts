/** An endpoint that is deleted and comes back with its id, as by the undoing of an apply, while a request goes on. */
import { expect } from 'chai';
import { openDatabase } from '../../../src/store/database.js';
import { eventually } from '../../support/eventually.js';
import { call } from '../../support/http.js';
import { isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

const SLEEPS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let ms = req.query_param("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
    std::thread::sleep(std::time::Duration::from_millis(ms));
    Response::text(200, "done")
}
handler_loop!(handle);
`;
const DENIES_ALL = { ip: { deny: ['127.0.0.1/32'] } };

describe('an endpoint that comes back', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.close());

  it('keeps the policies of a restored endpoint when its last request from before the deletion ends', async () => {
    const id = await stack.deploy({ path: '/back', code: SLEEPS });
    const at = `/api/endpoints/${id}`;
    const pidOf = async () => ((await must(stack.api.get(at))) as { pid: number | null }).pid ?? 0;
    const status = async () => (await call(`${stack.gatewayUrl}/back`)).status;
    const first = await pidOf();
    const long = call(`${stack.gatewayUrl}/back?ms=12000`);
    await eventually(async () => {
      const { body } = await stack.api.get('/metrics');
      expect(String(body)).to.match(/^edge_gateway_requests_in_flight 1$/m);
    });

    const store = openDatabase(stack.databaseUrl, () => undefined, 1);
    try {
      const row = (await store.knex('endpoints').where({ id }).first()) as Record<string, unknown>;
      await must(stack.api.delete(at));
      await eventually(async () => expect(await status()).to.equal(404));
      await store.knex('endpoints').insert({
        ...Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asColumn(value)])),
        ...{ desired_deployment_id: null, confirmed_deployment_id: null, latest_version: null },
        policies: JSON.stringify(DENIES_ALL),
      });
      store.announce('endpoint', id);
    } finally {
      await store.close();
    }
    await must(stack.api.post(`${at}/compile`));
    await must(stack.api.post(`${at}/start`));
    expect(await status()).to.equal(403);
    const second = await pidOf();
    expect(isRunning(first), 'the request from before').to.equal(true);

    expect((await long).status).to.equal(200);
    await eventually(() => expect(isRunning(first)).to.equal(false));
    process.kill(second, 'SIGKILL');
    await eventually(async () => {
      expect(await status()).to.equal(403);
      expect(await pidOf())
        .to.be.above(0)
        .and.not.equal(second);
    });
    expect(await status()).to.equal(403);
  });
});

/** JSON as text, which PostgreSQL takes. */
function asColumn(value: unknown): unknown {
  return value !== null && typeof value === 'object' && !(value instanceof Date)
    ? JSON.stringify(value)
    : value;
}
