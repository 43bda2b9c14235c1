/** The front of a gateway is killed, again and again, while it serves. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { frontOf } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

const CLIENTS = 9;
const KILLS = 10;
/** A front that died once may die again soon. */
const LIFE_MS = 200;

describe('a front that is killed under load', function () {
  this.timeout(120_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    id = await stack.deploy({ path: '/served', method: 'POST', code: numbered(1) });
  });
  after(() => stack?.close());

  const gateway = () => {
    const process = stack.processes.get('gateway');
    if (!process) throw new Error('no gateway');
    return process;
  };
  const front = () => frontOf(gateway().pid) ?? expect.fail('no front');
  const handler = async () => ((await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number }).pid;

  it(`a front that is killed ${KILLS} times is replaced without refusing a connection; handlers keep running`, async function () {
    gateway().logged.expectErrors(/front exited, starting another/);
    const running = await handler();
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: (client, number) => {
        const body = `${client}/${number}`;
        return { path: '/served', method: 'POST', body, text: `1 ${body}` };
      },
    });
    const away: number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      await delay(LIFE_MS);
      const failed = load.failures().length;
      const at = performance.now();
      process.kill(front(), 'SIGKILL');
      const servedAt = await eventually(() => load.firstServedAfter(at) ?? expect.fail('not served yet'));
      away.push(Math.round(servedAt - at));
      const served = load.served();
      await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 10));
      // The connections that it had.
      const cut = load.failures().slice(failed);
      expect(new Set(cut.map(({ client }) => client)).size, JSON.stringify(outcomes(cut))).to.equal(
        cut.length,
      );
    }
    const failures = await load.stop();
    for (const { status, what } of failures) {
      expect(status, what).to.equal(undefined);
      expect(what).not.to.match(/ECONNREFUSED/);
    }
    expect(await handler()).to.equal(running);
    if (this.test) this.test.title += ` (served again after ${away.join(', ')} ms)`;
  });

  it('a killed front leaves no client waiting whose connection it has not accepted', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    await delay(LIFE_MS);
    const stopped = front();
    process.kill(stopped, 'SIGSTOP');
    const answers = Array.from({ length: CLIENTS }, () =>
      call(`${stack.gatewayUrl}/served`, { method: 'POST' }),
    );
    // They are connected by then: the kernel does that.
    await delay(200);
    process.kill(stopped, 'SIGKILL');
    for (const { status } of await Promise.all(answers)) expect(status).to.equal(200);
  });

  it('a killed front is replaced by one that knows all changes since its start', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    await stack.deploy({ path: '/later', code: numbered(2) });
    const killed = front();
    process.kill(killed, 'SIGKILL');
    await eventually(() => expect(frontOf(gateway().pid)).not.to.be.oneOf([undefined, killed]));
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: () => ({ path: '/later', text: '2 ' }),
    });
    await eventually(() => expect(load.served()).to.be.greaterThan(CLIENTS * 20));
    expect(outcomes(await load.stop())).to.deep.equal({});
  });
});
