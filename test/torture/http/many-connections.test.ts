/**
 * Ten thousand connections on which nothing happens, more than a server takes, and more than it has descriptors for.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Flood, openConnections } from '../../support/connections.js';
import { eventually } from '../../support/eventually.js';
import { ANYTHING } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { frontOf, limitFiles } from '../../support/process-state.js';
import { type ProcessName, type Stack, startStack } from '../../support/processes.js';
import { CODE, RawHttp2 } from '../../support/raw-http2.js';

const IDLE = 10_000;
/** For each connection, of all memory of the process. */
const BYTES_FOR_ONE = 40_000;
const IDLE_HTTP2 = 500;
const BYTES_FOR_HTTP2 = 40_000;
/** More than Node and many other servers let wait. */
const BURST = 3_000;

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

  const flood = async (url: string, count: number, askEvery = 2, atOnce?: number) => {
    const opened = openConnections(url, count, askEvery, atOnce);
    floods.push(opened);
    return opened;
  };
  const pidOf = (name: ProcessName) => stack.processes.get(name)?.pid ?? 0;
  const front = () => frontOf(pidOf('gateway')) ?? 0;
  const memoryOf = (pid: number) =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

  it(`${IDLE_HTTP2} idle connections of HTTP/2 take little memory, and are closed`, async () => {
    const before = memoryOf(front());
    const fields = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':authority', 'localhost'],
      [':path', '/any'],
    ] as const;
    const connections: RawHttp2[] = [];
    try {
      for (let count = 0; count < IDLE_HTTP2; count++) {
        const connection = await RawHttp2.open(stack.gatewayUrl);
        connections.push(connection);
        expect((await connection.ended(connection.request(fields))).status).to.equal(200);
      }
      expect(connections.filter(({ isEnded }) => isEnded)).to.deep.equal([]);
      const used = memoryOf(front()) - before;
      expect(used / IDLE_HTTP2, 'bytes for a connection').to.be.below(BYTES_FOR_HTTP2);
      for (const connection of connections) {
        await connection.closed();
        expect(connection.goAway).to.equal(CODE.none);
      }
    } finally {
      for (const connection of connections) connection.close();
    }
  });

  it(`${IDLE} idle connections do not affect other requests, and are closed`, async () => {
    const hold = async (url: string, pid: number) => {
      const before = memoryOf(pid);
      const opened = await flood(url, IDLE);
      await opened.until(({ open, answered }) => open === IDLE && answered['200'] === IDLE / 2, 60_000);
      const used = memoryOf(pid) - before;
      for (let count = 0; count < 50; count++) expect((await call(url)).status).to.equal(200);
      expect(opened.counts().open).to.equal(IDLE);
      expect(used / IDLE, `bytes for a connection to ${url}`).to.be.below(BYTES_FOR_ONE);
      const { answered } = await opened.until(({ open }) => open === 0, 60_000);
      // Those that have sent nothing get a response.
      expect(answered).to.deep.equal({ 200: IDLE / 2, 408: IDLE / 2 });
    };
    await Promise.all([
      hold(`${stack.gatewayUrl}/any`, front()),
      hold(`${stack.apiUrl}/api/health`, pidOf('web')),
    ]);
  });

  for (const server of ['gateway', 'management API'] as const) {
    it(`a burst of ${BURST} connections that the ${server} cannot accept at once is served`, async () => {
      const [url, pid] =
        server === 'gateway'
          ? [`${stack.gatewayUrl}/any`, front()]
          : [`${stack.apiUrl}/api/health`, pidOf('web')];
      process.kill(pid, 'SIGSTOP');
      try {
        const burst = await flood(url, BURST, 1, BURST);
        await burst.until(({ open }) => open === BURST);
        process.kill(pid, 'SIGCONT');
        await burst.until(({ answered }) => answered['200'] === BURST);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
    });
  }

  describe('connections over the limit of a server', () => {
    before(async () => {
      for (const name of ['web', 'gateway'] as const) await stack.processes.get(name)?.end();
      const limits = { API_CONNECTIONS_LIMIT: '100', GATEWAY_CONNECTIONS_LIMIT: '100' };
      await Promise.all([stack.start('web', limits), stack.start('gateway', limits)]);
    });

    for (const server of ['gateway', 'management API'] as const) {
      const url = () => (server === 'gateway' ? `${stack.gatewayUrl}/any` : `${stack.apiUrl}/api/health`);

      it(`the ${server} refuses connections over its limit, and keeps those it has`, async () => {
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

  describe('connections over the number of file descriptors', () => {
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
    const limitDescriptors = (pid: number, count: number) => limitFiles(pid, `${count}:${count}`);

    /** Resolves when a process is not busy: one that is busy for nothing uses every tick. */
    const atRest = async (pid: number) => {
      let [last, count] = [0, 0];
      await eventually(() => {
        const now = ticks(pid);
        count = now === last ? count + 1 : 0;
        last = now;
        expect(count).to.equal(10);
      });
    };

    it('connections over the number of file descriptors do not end the management API, nor keep it busy', async () => {
      await stack.processes.get('web')?.end();
      const { pid } = await stack.start('web');
      limitDescriptors(pid, 150);
      const opened = await flood(`${stack.apiUrl}/api/health`, 400, 1);
      await opened.until(({ open, closed }) => open + closed === 400 && closed > 200);
      await atRest(pid);
      await opened.end();
      await eventually(async () => expect((await call(`${stack.apiUrl}/api/stats`)).status).to.equal(200));
      expect(stack.processes.get('web')?.pid).to.equal(pid);
    });

    it('the front refuses connections before its file descriptors run out, and does not end', async () => {
      stack.processes.get('gateway')?.logged.expectErrors(/front exited, starting another/);
      // The next front inherits it.
      limitDescriptors(pidOf('gateway'), 200);
      const old = front();
      process.kill(old, 'SIGKILL');
      const started = await eventually(() => {
        expect(front()).not.to.be.oneOf([0, old]);
        return front();
      });
      await eventually(async () => expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200));
      const opened = await flood(`${stack.gatewayUrl}/any`, 600, 1);
      await opened.until(({ open, closed }) => open + closed === 600 && closed >= 200);
      await opened.end();
      await eventually(async () => expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200));
      expect(front()).to.equal(started);
    });

    it('connections do not end the front when it knows of more descriptors than there are, nor keep it busy', async () => {
      const pid = front();
      limitDescriptors(pid, readdirSync(`/proc/${pid}/fd`).length + 50);
      const opened = await flood(`${stack.gatewayUrl}/any`, 130, 1);
      await opened.until(({ open, closed }) => open + closed === 130 && closed > 50);
      await atRest(pid);
      await opened.end();
      await eventually(async () => expect((await call(`${stack.gatewayUrl}/any`)).status).to.equal(200));
      expect(front()).to.equal(pid);
    });
  });
});
