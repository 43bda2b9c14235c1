/** Processes that end and come back, and servers that go away: what users notice of it. */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectFailure } from '../support/expect.js';
import { ANYTHING, numbered, slowToStart } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { freePort } from '../support/ports.js';
import { descendantsOf, isRunning, processesWith } from '../support/process-state.js';
import { must, type Stack } from '../support/processes.js';
import { type ProxiedStack, startProxiedStack } from '../support/proxied-stack.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { tempDir } from '../support/temp.js';

interface EndpointView {
  readonly status: string;
  readonly running: boolean;
  readonly pid: number | null;
}

describe('restarts', () => {
  let proxied: ProxiedStack | undefined;
  let stack: Stack;
  let id: string;
  let database: TcpProxy;
  before(async () => {
    proxied = await startProxiedStack();
    ({ stack, database } = proxied);
    id = await stack.deploy({ path: '/any', code: ANYTHING });
  });
  after(() => proxied?.close());

  const at = (path: string) => `${stack.gatewayUrl}${path}`;
  const view = async (endpoint = id) =>
    (await must(stack.api.get(`/api/endpoints/${endpoint}`))) as EndpointView;
  const gateway = () => {
    const process = stack.processes.get('gateway');
    if (!process) throw new Error('no gateway');
    return process;
  };
  const handled = async () =>
    ((await must(stack.api.get('/api/stats'))) as { requests_handled: number }).requests_handled;
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };

  it('counts the requests handled, across restarts of the gateway', async () => {
    const before = await handled();
    for (let i = 0; i < 5; i++) await call(at('/any'));
    await eventually(async () => expect(await handled()).to.equal(before + 5));
    await call(at('/any'));
    expect(await gateway().end()).to.deep.equal({ code: 0, signal: null });
    expect(await handled(), 'what was not yet written is written at the end').to.equal(before + 6);
    await stack.start('gateway');
    await call(at('/any'));
    await eventually(async () => expect(await handled()).to.equal(before + 7));
  });

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    it(`runs the same endpoints again after the gateway got ${signal}, and leaks no process`, async () => {
      const { pid } = await view();
      const others = descendantsOf(gateway().pid);
      expect(others.map((process) => process.pid)).to.include(pid);
      const { signal: endedBy } = await gateway().end(signal);
      expect(endedBy).to.equal(signal === 'SIGTERM' ? null : signal);
      await eventually(() => expect(others.filter((process) => isRunning(process.pid))).to.deep.equal([]));
      await stack.start('gateway');
      await eventually(async () => expect((await call(at('/any'))).status).to.equal(200));
      const now = await eventually(async () => {
        const current = await view();
        expect(current).to.include({ status: 'running', running: true });
        // That the request has woken it is observed a moment later.
        expect(current.pid).to.be.a('number');
        return current;
      });
      expect(now.pid).not.to.equal(pid);
      expect(descendantsOf(gateway().pid).map((process) => process.pid)).to.include(now.pid);
    });
  }

  it('reports a crashing handler as running once it has recovered after a restart of the gateway', async () => {
    const refused = await stack.deploy({ path: '/refused', code: ANYTHING });
    await stack.api.put(`/api/endpoints/${refused}/code`, { code: 'fn main( {' });
    expectFailure(await stack.api.post(`/api/endpoints/${refused}/compile`), 'compile_failed');
    const crashing = await stack.deploy({ path: '/crashing', code: ANYTHING });
    await eventually(async () => {
      await call(at('/crashing?do=exit'));
      expect(await view(crashing)).to.include({ status: 'error' });
    });
    // The worker would find it, too, and later.
    await stack.processes.get('worker')?.end();
    try {
      await gateway().end();
      await stack.start('gateway');
      await eventually(async () => expect(await view(crashing)).to.include({ status: 'running' }));
      expect((await call(at('/crashing'))).status).to.equal(200);
      // What it runs says nothing about a compile that was refused.
      expect((await call(at('/refused'))).status).to.equal(200);
      expect(await view(refused)).to.include({ status: 'error' });
    } finally {
      await stack.start('worker');
    }
  });

  it('finishes active requests when the gateway gets SIGTERM, and accepts no new ones', async () => {
    const agent = new Agent({ keepAlive: true });
    const slow = Array.from({ length: 10 }, (_, client) =>
      call(at('/any?do=sleep&ms=1000'), client < 5 ? { agent } : {}),
    );
    await eventually(async () => expect(await inFlight()).to.equal(10));
    // Meanwhile others come and go: they are answered, or cannot connect.
    let isOver = false;
    const refused: string[] = [];
    const load = Array.from({ length: 3 }, async () => {
      while (!isOver) {
        try {
          const { status, text } = await call(at('/any'));
          if (status !== 200) refused.push(`${status} ${text}`);
        } catch {
          await delay(5);
        }
      }
    });
    const ended = await gateway().end();
    const answers = await Promise.allSettled(slow);
    isOver = true;
    await Promise.all(load);
    agent.destroy();
    await stack.start('gateway');
    expect(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : answer.reason)),
    ).to.deep.equal(Array(10).fill(200));
    expect(refused).to.deep.equal([]);
    expect(ended).to.deep.equal({ code: 0, signal: null });
  });

  it('ends the process of a starting handler at once when its endpoint is stopped', async () => {
    await gateway().end();
    // Nothing else ends it while the test looks.
    await stack.start('gateway', { START_TIMEOUT_MS: '300000' });
    const endpoint = { name: 'slow', path: '/slow', method: 'GET', domain: '*', code: slowToStart(1, 1_000) };
    const slow = ((await must(stack.api.post('/api/endpoints', endpoint))) as { id: string }).id;
    await must(stack.api.post(`/api/endpoints/${slow}/compile`));
    const starting = stack.api.post(`/api/endpoints/${slow}/start`);
    const processes = () => processesWith(`EDGE_ENDPOINT_ID=${slow}`);
    await eventually(() => expect(processes()).not.to.deep.equal([]));
    await must(stack.api.post(`/api/endpoints/${slow}/stop`));
    await eventually(() => expect(processes()).to.deep.equal([]));
    expect((await starting).status).not.to.equal(200);
  });

  it('refuses to start an endpoint when no gateway runs', async () => {
    await gateway().end();
    expectFailure(await stack.api.post(`/api/endpoints/${id}/start`), 'no_gateway');
    expect(await view()).to.include({ running: false, pid: null });
    const other = await must(
      stack.api.post('/api/endpoints', { name: 'x', path: '/x', method: 'GET', domain: '*', code: ANYTHING }),
    );
    await must(stack.api.post(`/api/endpoints/${(other as { id: string }).id}/compile`));
    expectFailure(await stack.api.post(`/api/endpoints/${(other as { id: string }).id}/start`), 'no_gateway');
    await stack.start('gateway');
    await must(stack.api.post(`/api/endpoints/${(other as { id: string }).id}/start`));
    expect((await call(at('/x'))).status).to.equal(200);
  });

  it('runs an endpoint on every gateway, and waits for all of them when it is stopped', async () => {
    const port = await freePort();
    const second = stack.launch('gateway', { GATEWAY_PORT: String(port) });
    try {
      await second.ready;
      const other = `http://127.0.0.1:${port}`;
      const shared = await stack.deploy({ path: '/shared', code: ANYTHING });
      const instanceAt = async (base: string) =>
        (JSON.parse((await call(`${base}/shared`)).text) as { instance: number }).instance;
      expect(await instanceAt(stack.gatewayUrl)).not.to.equal(await instanceAt(other));
      const pids = processesWith(`EDGE_ENDPOINT_ID=${shared}`);
      const { pid } = await view(shared);
      expect(pids).to.include(pid);
      const ofFirst = descendantsOf(gateway().pid).map((process) => process.pid);
      expect(ofFirst, 'that of the gateway that has been there longest').to.include(pid);
      await must(stack.api.post(`/api/endpoints/${shared}/stop`));
      expect(pids.filter(isRunning)).to.deep.equal([]);
      expect([(await call(at('/shared'))).status, (await call(`${other}/shared`)).status]).to.deep.equal([
        503, 503,
      ]);
      await must(stack.api.delete(`/api/endpoints/${shared}`));
    } finally {
      expect(await second.end()).to.deep.equal({ code: 0, signal: null });
    }
    expect((await call(at('/any'))).status).to.equal(200);
  });

  it('keeps serving endpoints while PostgreSQL is down, and reconnects all processes to it', async () => {
    await database.down();
    await eventually(async () =>
      expectFailure(await stack.api.get('/api/endpoints'), 'database_unavailable'),
    );
    for (let i = 0; i < 20; i++) expect((await call(at('/any'))).status).to.equal(200);
    expect((await call(at('/any?do=exit'))).status).to.equal(502);
    await eventually(async () => expect((await call(at('/any'))).status).to.equal(200));
    await database.up();
    await eventually(async () => expect((await stack.api.get('/api/endpoints')).status).to.equal(200));
    const back = await stack.deploy({ path: '/back', code: numbered(7) });
    expect((await call(at('/back'))).text).to.equal('7 ');
    await eventually(async () => expect(await view(id)).to.include({ running: true, status: 'running' }));
    await must(stack.api.delete(`/api/endpoints/${back}`));
  });

  describe('processes that get SIGTERM while they start', () => {
    /** SIGTERM comes at once, or after so many lines of its log; at debug level, these are spread over the start. */
    const MOMENTS = [0, 1, 2, 3, 4];
    for (const name of ['gateway', 'worker', 'web', 'actor-host'] as const) {
      it(`ends ${name} cleanly when it gets SIGTERM while it starts`, async () => {
        for (const lines of MOMENTS) {
          const port = String(await freePort());
          // One folder has one actor host.
          const data = await tempDir('ending');
          const own = name === 'actor-host' ? { DATA_DIR: data.path } : {};
          const env = { GATEWAY_PORT: port, PORT: port, LOG_LEVEL: 'debug', ...own };
          const launched = stack.launch(name, env);
          const begun = eventually(() => expect(launched.logged.lines).to.have.length.at.least(lines));
          await Promise.race([begun, launched.ready]);
          const children = descendantsOf(launched.pid);
          const { code, signal } = await launched.end();
          // Before it has begun to listen for the signal, it ends by it.
          expect(code === 0 || signal === 'SIGTERM', `after ${lines} lines: ${code} ${signal}`).to.equal(
            true,
          );
          await eventually(() => expect(children.filter(({ pid }) => isRunning(pid))).to.deep.equal([]));
          await data.remove();
        }
      });
    }
  });
});
