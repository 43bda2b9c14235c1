/**
 * Ten thousand connections on which nothing happens, more than a server takes, and more than it has descriptors for.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Flood, openConnections } from '../../support/connections.js';
import { eventually } from '../../support/eventually.js';
import { ANYTHING } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { descendantsOf } from '../../support/process-state.js';
import { type ProcessName, type Stack, startStack } from '../../support/processes.js';

const IDLE = 10_000;
/** For each connection, of all memory of the process. */
const BYTES_FOR_ONE = 40_000;

describe('many connections', function () {
  this.timeout(120_000);
  let stack: Stack;
  const floods: Flood[] = [];

  before(async () => {
    stack = await startStack({
      // Long enough for all to be open at the same time.
      env: { HTTP_HEAD_TIMEOUT_MS: '20000', HTTP_IDLE_TIMEOUT_MS: '20000', GATEWAY_CONCURRENCY: '2' },
    });
    await stack.deploy({ path: '/any', code: ANYTHING });
  });
  afterEach(async () => {
    for (const flood of floods.splice(0)) await flood.end();
  });
  after(() => stack.close());

  const flood = async (url: string, count: number, askEvery = 2) => {
    const opened = await openConnections(url, count, askEvery);
    floods.push(opened);
    return opened;
  };
  const pidOf = (name: ProcessName) => stack.processes.get(name)?.pid ?? 0;
  const fronts = () =>
    descendantsOf(pidOf('gateway')).flatMap(({ pid, command }) =>
      command.includes('gateway-front') ? [pid] : [],
    );
  const memoryOf = (pids: readonly number[]) =>
    pids
      .map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024)
      .reduce((sum, bytes) => sum + bytes, 0);

  it(`${IDLE}, idle, do not affect other requests, and are closed`, async () => {
    const hold = async (url: string, pids: readonly number[]) => {
      const before = memoryOf(pids);
      const opened = await flood(url, IDLE);
      await opened.until(({ open, answered }) => open === IDLE && answered['200'] === IDLE / 2, 60_000);
      const used = memoryOf(pids) - before;
      for (let count = 0; count < 50; count++) expect((await call(url)).status).to.equal(200);
      expect(opened.counts().open).to.equal(IDLE);
      expect(used / IDLE, `bytes for a connection to ${url}`).to.be.below(BYTES_FOR_ONE);
      const { answered } = await opened.until(({ open }) => open === 0, 60_000);
      // Those that have sent nothing get a response.
      expect(answered).to.deep.equal({ 200: IDLE / 2, 408: IDLE / 2 });
    };
    await Promise.all([
      hold(`${stack.gatewayUrl}/any`, fronts()),
      hold(`${stack.apiUrl}/api/health`, [pidOf('web')]),
    ]);
  });

  describe('over the limit of a server', () => {
    before(async () => {
      for (const name of ['web', 'gateway'] as const) await stack.processes.get(name)?.end();
      const limits = { API_CONNECTIONS_LIMIT: '100', GATEWAY_CONNECTIONS_LIMIT: '100' };
      await Promise.all([
        stack.start('web', limits),
        stack.start('gateway', { ...limits, GATEWAY_CONCURRENCY: '1' }),
      ]);
    });

    for (const server of ['gateway', 'management API'] as const) {
      const url = () => (server === 'gateway' ? `${stack.gatewayUrl}/any` : `${stack.apiUrl}/api/health`);

      it(`are refused by the ${server}; those it has are served`, async () => {
        const kept = await flood(url(), 100, 1);
        await kept.until(({ open, answered }) => open === 100 && answered['200'] === 100);
        const refused = await call(url());
        expect(refused.status).to.equal(503);
        expect(refused.headers).to.include({ 'retry-after': '1', connection: 'close' });
        expect(JSON.parse(refused.text))
          .to.have.property('error')
          .that.matches(/connections are in use/);
        expect(kept.counts().closed).to.equal(0);
        await kept.end();
        await eventually(async () => expect((await call(url())).status).to.equal(200));
      });
    }
  });

  describe('over the number of file descriptors', () => {
    /** Time on a processor so far, in ticks. */
    const ticks = (pid: number) => {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const [user, system] = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 13)
        .map(Number);
      return (user ?? 0) + (system ?? 0);
    };
    const limitDescriptors = (pid: number, count: number) =>
      execFileSync('prlimit', ['--pid', String(pid), `--nofile=${count}:${count}`]);

    it('do not end the management API, nor keep it busy', async () => {
      await stack.processes.get('web')?.end();
      const { pid } = await stack.start('web');
      limitDescriptors(pid, 150);
      const opened = await flood(`${stack.apiUrl}/api/health`, 400, 1);
      await opened.until(({ open, closed }) => open + closed === 400 && closed > 200);
      // It comes to rest: one that is busy for nothing uses every tick.
      let [last, atRest] = [0, 0];
      await eventually(() => {
        const now = ticks(pid);
        atRest = now === last ? atRest + 1 : 0;
        last = now;
        expect(atRest).to.equal(10);
      });
      await opened.end();
      await eventually(async () => expect((await call(`${stack.apiUrl}/api/stats`)).status).to.equal(200));
      expect(stack.processes.get('web')?.pid).to.equal(pid);
    });

    it('do not end the gateway: its fronts refuse them before that', async () => {
      const gateway = stack.processes.get('gateway');
      gateway?.logged.expectErrors(/front exited, starting another/);
      limitDescriptors(pidOf('gateway'), 200);
      const old = fronts();
      for (const pid of old) process.kill(pid, 'SIGKILL');
      await eventually(() => {
        expect(fronts()).to.have.length(old.length);
        expect(fronts().filter((pid) => old.includes(pid))).to.deep.equal([]);
      });
      await eventually(async () => expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200));
      const started = fronts();
      const opened = await flood(`${stack.gatewayUrl}/any`, 600, 1);
      await opened.until(({ open, closed }) => open + closed === 600 && closed >= 200);
      await opened.end();
      await eventually(async () => expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200));
      expect(fronts()).to.have.members(started);
    });
  });
});
