/** The front of a gateway as the supervisor runs it: replaced under load, ended with it, short of file descriptors. */
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { readProcess } from '../../src/sandbox/process-table.js';
import { FRONT_USER, HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { ANYTHING, numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { outcomes, startLoad } from '../support/load.js';
import {
  descendantsOf,
  frontOf,
  frontsOf,
  isRunning,
  limitFiles,
  rightsOf,
} from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

const CLIENTS = 8;

describe('the front of a gateway', () => {
  let stack: Stack;
  /** The endpoint `/slow`. */
  let slowId: string;
  /** Requests that handlers have answered. */
  let answered = 0;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      // Time enough to replace all there is on a busy machine.
      env: { GATEWAY_CONCURRENCY: '2', REQUEST_TIMEOUT_MS: '300000' },
    });
    await stack.deploy({ path: '/number', method: 'POST', code: numbered(1) });
    slowId = await stack.deploy({ path: '/slow', code: ANYTHING });
  });
  after(() => stack.close());

  const gateway = () => stack.processes.get('gateway') ?? expect.fail('no gateway');
  const front = () => frontOf(gateway().pid) ?? expect.fail('no front');
  const pidOf = async (id: string) =>
    ((await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number }).pid;
  const replace = async () => {
    const old = front();
    process.kill(gateway().pid, 'SIGUSR2');
    await eventually(() => {
      const [next] = frontsOf(gateway().pid).filter((pid) => pid !== old);
      const listening = gateway().logged.lines.filter(({ msg }) => msg === 'front listening');
      expect(listening.map(({ front }) => front)).to.include(next);
    });
    return old;
  };

  it('replaces the front on SIGUSR2, under load, without a failed request', async () => {
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: (client, number) => {
        const body = `${client}/${number}`;
        // Some are under way when the signal comes. Some come on new connections.
        const headers = number % 5 === 0 ? { connection: 'close' } : {};
        const path = `/number?ms=${number % 7 === 0 ? 200 : 0}`;
        return { path, method: 'POST', body, headers, text: `1 ${body}` };
      },
    });
    for (let round = 0; round < 3; round++) {
      const old = await replace();
      await eventually(() => expect(isRunning(old)).to.equal(false));
      const served = load.served();
      await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 20));
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
    answered += load.served();
    expect(gateway().logged.lines.filter(({ msg }) => msg === 'replaced front has ended')).to.have.length(3);
  });

  it('finishes requests of a replaced front, also those of a handler that is replaced meanwhile', async () => {
    const handler = await pidOf(slowId);
    const slow = call(`${stack.gatewayUrl}/slow?do=wait&file=/tmp/go-on`);
    await eventually(async () => expect(await inFlight()).to.equal(1));
    const old = await replace();
    await must(stack.api.put(`/api/endpoints/${slowId}`, { limits: { open_files: 500 } }));
    await eventually(async () => expect(await pidOf(slowId)).not.to.be.oneOf([handler, null]));
    expect(isRunning(handler), 'the old handler').to.equal(true);
    expect(isRunning(old), 'the old front').to.equal(true);
    expect((await call(`${stack.gatewayUrl}/slow`)).status).to.equal(200);
    await writeFile(`/proc/${handler}/root/tmp/go-on`, '');
    expect((await slow).status).to.equal(200);
    answered += 2;
    await eventually(() => expect([handler, old].filter(isRunning)).to.deep.equal([]));
  });

  it('adds up metrics of two fronts while one replaces the other, and counts all requests', async () => {
    const handled = async () =>
      ((await must(stack.api.get('/api/stats'))) as { requests_handled: number }).requests_handled;
    await eventually(async () => expect(await handled()).to.equal(answered));
    const slow = call(`${stack.gatewayUrl}/slow?do=wait&file=/tmp/both`);
    await eventually(async () => expect(await inFlight()).to.equal(1));
    await replace();
    const other = call(`${stack.gatewayUrl}/slow?do=wait&file=/tmp/both`);
    await eventually(async () => expect(await inFlight()).to.equal(2));
    await writeFile(`/proc/${await pidOf(slowId)}/root/tmp/both`, '');
    for (const { status } of await Promise.all([slow, other])) expect(status).to.equal(200);
    await eventually(async () => expect(await handled()).to.equal(answered + 2));
  });

  it('runs the front as a user of its own without rights of root, with a filter of system calls', () => {
    const { user, ...rights } = rightsOf(front());
    expect(rights).to.deep.equal({ capabilities: 0n, noNewPrivs: true, isFiltered: true });
    if (HAS_UNTRUSTED_USERS) expect(user).to.equal(FRONT_USER);
  });

  it('reports no handler as lost while the front has no file descriptors, and connects when it has', async () => {
    await eventually(() => expect(frontsOf(gateway().pid)).to.have.length(1));
    const pid = front();
    const limit = (count: number | string) => limitFiles(pid, `${count}:`);
    // It limits the numbers of new ones: none is left, whichever of the present ones are closed meanwhile.
    limit(0);
    const deploying = stack.deploy({ path: '/unconnected', code: numbered(3) });
    await eventually(() =>
      expect(
        gateway()
          .logged.lines.map(({ msg }) => String(msg))
          .join('\n'),
      ).to.match(/out of file descriptors for connections to handlers; trying again/),
    );
    const started = () => gateway().logged.lines.filter(({ msg }) => msg === 'handler ready').length;
    const before = started();
    limit(1_000);
    await deploying;
    expect((await call(`${stack.gatewayUrl}/unconnected`)).text).to.equal('3 ');
    expect(started(), 'handlers started').to.equal(before);
    expect(front()).to.equal(pid);
  });

  it('replaces a killed front at once, and after a pause when fronts end again and again', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const logged = (message: RegExp) =>
      gateway().logged.lines.filter(({ msg }) => message.test(String(msg))).length;
    let kills = 0;
    while (logged(/pausing before the next/) === 0) {
      const before = logged(/front listening/);
      process.kill(front(), 'SIGKILL');
      kills++;
      await eventually(() => expect(logged(/front listening/)).to.be.greaterThan(before));
    }
    expect(kills).to.be.greaterThan(10);
    expect((await call(`${stack.gatewayUrl}/number`, { method: 'POST' })).text).to.equal('1 ');
  });

  it('tells how a handler has ended, also when its end is noticed long after that of its connection', async () => {
    const id = await stack.deploy({ path: '/exits', code: ANYTHING });
    const monitor = readProcess(String(await pidOf(id)))?.parent ?? 0;
    const isMonitor = descendantsOf(gateway().pid).some(
      ({ pid, command }) => pid === monitor && /^\S*\/launcher /.test(command),
    );
    // Without namespaces the supervisor itself waits for it.
    if (isMonitor) process.kill(monitor, 'SIGSTOP');
    expect((await call(`${stack.gatewayUrl}/exits?do=exit`)).status).to.equal(502);
    // Nothing shows that the supervisor has given it up; too early, and it tells the same.
    await delay(1_000);
    if (isMonitor) process.kill(monitor, 'SIGCONT');
    await eventually(() => {
      const reasons = gateway().logged.lines.flatMap(({ msg, reason }) =>
        msg === 'handler crashed' ? [reason] : [],
      );
      expect(reasons).to.deep.equal(['it ended with exit code 3']);
    });
  });

  it('kills and replaces a front that hangs', async () => {
    gateway().logged.expectErrors(/front does not answer|front exited, starting another/);
    const hanging = front();
    process.kill(hanging, 'SIGSTOP');
    await eventually(() => expect(isRunning(hanging)).to.equal(false), 30_000);
    expect((await call(`${stack.gatewayUrl}/number`, { method: 'POST' })).text).to.equal('1 ');
  });

  it('replaces a front whose connections to handlers nobody makes any more', async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    const old = front();
    const [connector] = descendantsOf(old);
    process.kill(connector?.pid ?? expect.fail('nobody connects'), 'SIGKILL');
    gateway().logged.expectErrors(/front exited, starting another/);
    await stack.deploy({ path: '/with-another-front', code: numbered(5) });
    expect(frontOf(gateway().pid)).not.to.equal(old);
  });

  it('ends the front when its supervisor is killed, and leaves the port to the next one', async () => {
    const orphan = front();
    // No connection keeps it.
    const slow = call(`${stack.gatewayUrl}/slow?do=sleep&ms=20000`).then(
      ({ status }) => status,
      () => 'cut',
    );
    await eventually(async () => expect(await inFlight()).to.equal(1));
    await gateway().end('SIGKILL');
    // Its handler ends, too, and may do so first.
    expect(await slow).to.be.oneOf(['cut', 502]);
    await eventually(() => expect(isRunning(orphan)).to.equal(false));
    await stack.start('gateway');
    expect((await call(`${stack.gatewayUrl}/number`, { method: 'POST' })).text).to.equal('1 ');
  });

  it('refuses to start a gateway whose port is in use, and gives the reason', async () => {
    const second = stack.launch('gateway');
    second.logged.expectErrors(/could not start/);
    const outcome = await second.ready.then(
      () => 'ready',
      (error: Error) => error.message,
    );
    expect(outcome).to.match(
      /The gateway cannot open its port: listen EADDRINUSE: address already in use 127\.0\.0\.1:\d+/,
    );
  });

  async function inFlight(): Promise<number> {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  }
});
