/** One front of a gateway is killed while all of them serve. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { descendantsOf } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

const FRONTS = 3;
const CLIENTS = 9;

describe('a front that is killed under load', () => {
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: String(FRONTS) },
    });
    id = await stack.deploy({ path: '/served', method: 'POST', code: numbered(1) });
  });
  after(() => stack?.close());

  const gateway = () => {
    const process = stack.processes.get('gateway');
    if (!process) throw new Error('no gateway');
    return process;
  };
  const fronts = () =>
    descendantsOf(gateway().pid).flatMap(({ pid, command }) =>
      command.includes('gateway-front') ? [pid] : [],
    );
  const pid = async () => ((await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number }).pid;
  const putOnLoad = () =>
    startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: (client, number) => {
        const body = `${client}/${number}`;
        return { path: '/served', method: 'POST', body, text: `1 ${body}` };
      },
    });
  /** Whether a front that is none of these is open for requests. */
  const isReplaced = (before: readonly number[]) =>
    gateway().logged.lines.some(
      ({ msg, front }) =>
        msg === 'front listening' && !before.includes(Number(front)) && fronts().includes(Number(front)),
    );

  it('closes only its own connections, and is replaced; handlers keep running', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const handler = await pid();
    const before = fronts();
    expect(before).to.have.length(FRONTS);
    const load = await putOnLoad();
    process.kill(before[0] ?? 0, 'SIGKILL');
    await eventually(() => expect(isReplaced(before)).to.equal(true));
    const served = load.served();
    await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 10));
    const failures = await load.stop();
    // Each client has one connection, and the fronts share them evenly.
    const cut = new Set(failures.map(({ client }) => client));
    expect(cut.size, JSON.stringify(outcomes(failures))).to.equal(failures.length);
    expect(cut.size).to.be.at.most(CLIENTS - CLIENTS / FRONTS);
    for (const { status } of failures) expect(status).to.equal(undefined);
    expect(await pid()).to.equal(handler);
  });

  it('leaves no client waiting whose connection was being handed to it', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const [front = 0] = fronts();
    let served = 0;
    const request = async () => {
      expect((await call(`${stack.gatewayUrl}/served`, { method: 'POST' })).status).to.equal(200);
      served++;
    };
    // It accepts nothing any more, and is handed one connection that it never acknowledges.
    process.kill(front, 'SIGSTOP');
    const requests = Array.from({ length: CLIENTS }, request);
    await eventually(() => expect(served).to.equal(CLIENTS - 1));
    process.kill(front, 'SIGKILL');
    await Promise.all(requests);
  });

  it('is replaced by one that knows all changes since its start', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const before = fronts();
    await stack.deploy({ path: '/later', code: numbered(2) });
    process.kill(before[0] ?? 0, 'SIGKILL');
    await eventually(() => expect(isReplaced(before)).to.equal(true));
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: FRONTS * 4,
      request: () => ({ path: '/later', text: '2 ' }),
    });
    await eventually(() => expect(load.served()).to.be.greaterThan(FRONTS * 40));
    expect(outcomes(await load.stop())).to.deep.equal({});
  });
});
