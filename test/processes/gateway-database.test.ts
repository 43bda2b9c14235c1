/** What happens to handlers while PostgreSQL is away is known once it is back. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { descendantsOf } from '../support/process-state.js';
import { must, type Stack } from '../support/processes.js';
import { type ProxiedStack, startProxiedStack } from '../support/proxied-stack.js';
import type { TcpProxy } from '../support/tcp-proxy.js';

/** Takes its time to become ready. */
const STARTS_SLOWLY = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::text(200, "at last") }
mod real { use super::*; handler_loop!(handle); pub fn run() { main() } }
fn main() { std::thread::sleep(std::time::Duration::from_secs(5)); real::run() }
`;

describe('a gateway while PostgreSQL is down', () => {
  let proxied: ProxiedStack | undefined;
  let stack: Stack;
  let database: TcpProxy;
  before(async () => {
    proxied = await startProxiedStack();
    ({ stack, database } = proxied);
  });
  after(() => proxied?.close());

  const gateway = () => {
    const process = stack.processes.get('gateway');
    if (!process) throw new Error('no gateway');
    return process;
  };
  const hasLogged = (text: RegExp) => gateway().logged.lines.some(({ msg }) => text.test(String(msg)));
  const isBack = () =>
    eventually(async () => expect((await stack.api.get('/api/endpoints')).status).to.equal(200));

  it('reports a handler that started while PostgreSQL was down, once PostgreSQL is back', async () => {
    const endpoint = { name: 'slow', path: '/slow', method: 'GET', domain: '*', code: STARTS_SLOWLY };
    const { id } = (await must(stack.api.post('/api/endpoints', endpoint))) as { id: string };
    await must(stack.api.post(`/api/endpoints/${id}/compile`));
    const before = descendantsOf(gateway().pid).length;
    const start = stack.api.post(`/api/endpoints/${id}/start`);
    await eventually(() => expect(descendantsOf(gateway().pid).length).to.be.greaterThan(before));
    await database.down();
    expect((await start).status).to.equal(503);
    await eventually(() => expect(hasLogged(/observation could not be saved/)).to.equal(true));
    await database.up();
    await isBack();
    expect(await must(stack.api.post(`/api/endpoints/${id}/start`))).to.include({ status: 'running' });
    expect((await call(`${stack.gatewayUrl}/slow`)).text).to.equal('at last');
  });

  it('reports a handler that kept crashing while PostgreSQL was down, once PostgreSQL is back', async () => {
    const id = await stack.deploy({ path: '/crashes', method: 'POST', code: ANYTHING });
    await database.down();
    await eventually(async () => {
      await call(`${stack.gatewayUrl}/crashes?do=exit`, { method: 'POST' });
      expect(hasLogged(/crash loop or recovery could not be saved/)).to.equal(true);
    });
    await database.up();
    await eventually(async () =>
      expect(await must(stack.api.get(`/api/endpoints/${id}`))).to.include({ status: 'error' }),
    );
  });
});
