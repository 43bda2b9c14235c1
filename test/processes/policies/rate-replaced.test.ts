/** Limits of rates while the front that counts is replaced, or killed; with real processes. */
import { Agent } from 'node:http';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { flood } from '../../support/flood.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';
import { frontsOf, isRunning } from '../../support/process-state.js';

const LIMIT = 3_000;
const REQUESTS = 4_000;
const REPLACEMENTS = 3;
const RULE = { requests: LIMIT, window_seconds: 3600 };

describe('the policy rate_limit and fronts that are replaced or killed', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ TRUSTED_PROXIES: '127.0.0.1', GATEWAY_CONCURRENCY: '2' });
    await one.set(one.endpoint, {
      // By who calls, and without knowing that.
      rate_limit: [
        { ...RULE, by: 'address' },
        { ...RULE, by: 'subject' },
      ],
    });
  });
  after(() => one?.close());
  const gateway = () => one.stack.processes.get('gateway') ?? expect.fail('no gateway');
  const headersOf = (address: string) => ({ host: one.host, 'x-forwarded-for': address });
  const leftOf = async (address: string) => {
    const { headers } = await one.send({ headers: headersOf(address) });
    return [...String(headers['ratelimit']).matchAll(/;r=(\d+);/g)].map(([, left]) => Number(left));
  };
  const listens = (front: number) =>
    gateway().logged.lines.some((line) => line['msg'] === 'front listening' && line['front'] === front);
  /** Resolves when the next one serves; the old one may have requests. */
  const replace = async () => {
    const before = frontsOf(gateway().pid);
    process.kill(gateway().pid, 'SIGUSR2');
    await eventually(() => {
      const others = frontsOf(gateway().pid).filter((front) => !before.includes(front));
      expect(others.some(listens)).to.equal(true);
    });
  };
  const isAlone = () =>
    eventually(() => {
      const fronts = frontsOf(gateway().pid);
      expect(fronts).to.have.length(1);
      return fronts[0] ?? 0;
    });

  it('admits exactly the rate limit while the front is replaced again and again under load', async () => {
    let replaced = Promise.resolve();
    let begun = 0;
    const [statuses] = await flood({
      targets: [one.stack.gatewayUrl],
      path: '/shown',
      headers: headersOf('198.51.100.1'),
      clients: 32,
      requests: REQUESTS,
      // The last one while requests are refused.
      onAnswer: (answered) => {
        if (answered < (begun + 1) * (REQUESTS / (REPLACEMENTS + 1))) return;
        if (begun === REPLACEMENTS) return;
        begun++;
        replaced = replaced.then(replace);
      },
    });
    await replaced;
    expect(begun).to.equal(REPLACEMENTS);
    expect(statuses).to.deep.equal({ 200: LIMIT, 429: REQUESTS - LIMIT });
    expect((await one.send({ headers: headersOf('198.51.100.1') })).status).to.equal(429);
  });

  it('admits exactly the rate limit while the front is replaced many times at once', async () => {
    const [statuses] = await flood({
      targets: [one.stack.gatewayUrl],
      path: '/shown',
      headers: headersOf('198.51.100.3'),
      clients: 16,
      requests: REQUESTS,
      onAnswer: (answered) => {
        if (answered % (REQUESTS / 20) === 0) process.kill(gateway().pid, 'SIGUSR2');
      },
    });
    expect(statuses).to.deep.equal({ 200: LIMIT, 429: REQUESTS - LIMIT });
    await isAlone();
    expect((await one.send({ headers: headersOf('198.51.100.3') })).status).to.equal(429);
  });

  it('counts requests that a replaced front still gets towards the rate limit', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = headersOf('198.51.100.2');
    let sent = 0;
    const isClosing = async () => {
      sent++;
      return (await one.send({ headers, agent })).headers['connection'] === 'close';
    };
    // Fronts that were replaced before may still be closing.
    await eventually(async () => expect(await isClosing()).to.equal(false));
    await replace();
    // The connection is the old front's, which closes it with an answer.
    await eventually(async () => expect(await isClosing()).to.equal(true));
    agent.destroy();
    const left = LIMIT - sent - 1;
    expect(await leftOf('198.51.100.2')).to.deep.equal([left, left]);
  });

  it('counts a rate limit anew when the front is killed', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const killed = await isAlone();
    expect((await one.send({ headers: headersOf('198.51.100.1') })).status).to.equal(429);
    process.kill(killed, 'SIGKILL');
    await eventually(() => expect(isRunning(killed)).to.equal(false));
    expect(await leftOf('198.51.100.1')).to.deep.equal([LIMIT - 1, LIMIT - 1]);
  });
});
